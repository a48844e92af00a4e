"""The state of training: two checkpoints, each with its digest; the older one is read where the newer is damaged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bayesneg.errors import DamagedError
from bayesneg.integrity.digests import SEAL, digest_of_arrays
from bayesneg.runs.stored.manifest import checked
from bayesneg.runs.stored.names import CHECKPOINT, PREVIOUS, TRAINED, WAY_OUT
from bayesneg.runs.stored.writing import read_arrays
from bayesneg.whole_files import write_whole


def write_checkpoint(folder: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """The state of training with its digest; the state before stays beside it."""
    from safetensors.numpy import save

    whole = {key: np.asarray(value, order="C") for key, value in arrays.items()}
    path = folder / CHECKPOINT

    def write(part: Path) -> None:
        part.write_bytes(save(whole, metadata={SEAL: digest_of_arrays(whole)}))
        if path.exists():
            path.replace(folder / PREVIOUS)

    write_whole(path, write)


def read_checkpoint(folder: Path, *, mend: bool = False) -> dict[str, np.ndarray] | None:
    """The newest state of training that is whole; None where no epoch was kept.

    Args:
        folder: The folder of the run.
        mend: Whether to remove a damaged one, so that it never takes the place of the older.

    Raises:
        DamagedError: There are checkpoints, and all are damaged.
    """
    found = [folder / name for name in (CHECKPOINT, PREVIOUS) if (folder / name).exists()]
    for path in found:
        try:
            arrays = read_sealed(path)
        except DamagedError:
            if path == found[-1]:
                raise
            continue
        for damaged in found[: found.index(path)] if mend else ():
            damaged.unlink()
        return arrays
    return None


def read_sealed(path: Path) -> dict[str, np.ndarray]:
    """Arrays whose file has their digest; those of an earlier version have none."""
    from safetensors import safe_open

    with damage_named(path, "resume the run from another copy of it, or train it again"):
        with safe_open(path, framework="numpy") as stored:
            digest = (stored.metadata() or {}).get(SEAL)
        arrays = read_arrays(path)
        if digest is not None and digest != digest_of_arrays(arrays):
            raise DamagedError("its arrays do not have the sha256 that it says")
    return arrays


@contextmanager
def damage_named(path: Path, way_out: str = WAY_OUT, *, what: str = "run") -> Iterator[None]:
    """What is wrong with the content of a file, with its name and the way out."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        if isinstance(error, DamagedError) and str(path) in str(error):
            raise
        raise DamagedError(f"{path}: the {what} is damaged ({error}); {way_out}") from error


def read_trained(folder: Path, n_users: int, *, best: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """The embeddings of users and items that training moved, at the reported epoch; None where none were kept."""
    is_apart = (folder / TRAINED).exists()
    stored = read_arrays(checked(folder, TRAINED)) if is_apart else read_checkpoint(folder) or {}
    for part in ("best.", "model.", "") if best else ("model.", ""):
        if {f"{part}users", f"{part}items"} <= stored.keys():
            return stored[f"{part}users"], stored[f"{part}items"]
        if f"{part}first" in stored:  # of LightGCN
            return stored[f"{part}first"][:n_users], stored[f"{part}first"][n_users:]
    return None
