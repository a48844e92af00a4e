"""Files of every kind, damaged: what reads them gives the right answer, or refuses in one sentence.

A worker process tries one damage after the other; where it crashes, the damage is a failure and another one goes on.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST = 1 << 30  # bytes of memory beyond what a process has
WORKER = "import sys; sys.path[:0] = [{tests!r}]; from enduring.damages import worker; worker(*sys.argv[1:])"


# ------------------------------------------------------------------------------------------------------- the damages


def _flip(data: bytearray, rng: random.Random) -> bytes:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def _cut(data: bytearray, rng: random.Random) -> bytes:
    return bytes(data[: rng.randrange(len(data))])


def _zeros(data: bytearray, rng: random.Random) -> bytes:
    start = rng.randrange(len(data))
    data[start : start + 64] = bytes(len(data[start : start + 64]))
    return bytes(data)


def _noise(data: bytearray, rng: random.Random) -> bytes:
    start = rng.randrange(len(data))
    data[start : start + 16] = rng.randbytes(len(data[start : start + 16]))
    return bytes(data)


def _longer(data: bytearray, rng: random.Random) -> bytes:
    return bytes(data) + rng.randbytes(1 + rng.randrange(40))


def _doubled_line(data: bytearray, rng: random.Random) -> bytes:
    lines = bytes(data).split(b"\n")
    place = rng.randrange(len(lines))
    return b"\n".join([*lines[: place + 1], *lines[place:]])


def _other_number(data: bytearray, rng: random.Random) -> bytes:
    """One number of a text becomes another one."""
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?", bytes(data)))
    if not found:
        return _flip(data, rng)
    one = rng.choice(found)
    other = rng.choice([b"-1", b"0", b"1073741824", b"1e400", b"NaN", b'"x"', b"[" * 5_000, b"99999999999999999999"])
    return bytes(data[: one.start()]) + other + bytes(data[one.end() :])


DAMAGES: tuple[Callable[[bytearray, random.Random], bytes], ...] = (
    _flip, _flip, _flip, _cut, _zeros, _noise, _longer, _doubled_line, _other_number,
)  # fmt: skip


def damage(folder: Path, rng: random.Random) -> str:
    """Damage one file of a folder; says which and how."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    path = rng.choice(files)
    name = str(path.relative_to(folder))
    kind = rng.randrange(len(DAMAGES) + 3)
    if kind == len(DAMAGES):
        path.unlink()
        return f"{name} removed"
    if kind == len(DAMAGES) + 1:
        path.write_bytes(b"")
        return f"{name} emptied"
    if kind == len(DAMAGES) + 2:
        other = rng.choice(files)
        path.write_bytes(other.read_bytes())
        return f"{name} replaced by {other.name}"
    data = bytearray(path.read_bytes())
    if not data:
        return f"{name} is empty"
    path.write_bytes(DAMAGES[kind](data, rng))
    return f"{name} {DAMAGES[kind].__name__.strip('_')}"


# ------------------------------------------------------------------------------------------------- what is read of it


KINDS = ("run", "ease", "itemknn", "srns", "aobpr", "export", "prepared")


def _prepared(place: Path, kinds: tuple[str, ...]) -> dict[str, list[list[str]]]:
    """Folders to damage, and the commands that read each; ``{}`` stands for the folder, ``{out}`` for a file beside."""
    from enduring.commands import ended, started, world

    data = world(place / "pairs.csv")
    train = ["train", str(data), "--set", "dim=8", "--baselines", "none"]
    made: dict[str, list[Any]] = {
        "run": [*train, "--sampler", "bns", "--epochs", 6],
        "ease": ["train", str(data), "--model", "ease", "--baselines", "none"],
        "itemknn": ["train", str(data), "--model", "item-knn", "--baselines", "none"],
        "srns": [*train, "--sampler", "srns", "--epochs", 25],
        "aobpr": [*train, "--sampler", "aobpr:rank=factor", "--epochs", 25],
    }
    for name, arguments in made.items():
        if name in kinds or name == "run":
            ended(started([*arguments, "--out", place / name], folder=place))
    for name in {"srns", "aobpr"} & set(kinds):  # as if they had been killed after the last checkpoint
        for made_last in ("metrics.json", "weights.safetensors", "per_user.parquet"):
            (place / name / made_last).unlink(missing_ok=True)
    if "export" in kinds:
        ended(started(["export", place / "run", place / "export"], folder=place))
    if "prepared" in kinds:
        ended(started(["data", "prepare", data, "--out", place / "prepared"], folder=place))
    lists = ["recommend", "{}", "--all-users", "-k", "5", "--out", "{out}.csv", "--force"]
    commands = {
        "run": [lists, ["evaluate", "{}", "--json"], ["similar", "{}", "3"]],
        "ease": [lists],
        "itemknn": [lists],
        "srns": [[*map(str, made["srns"]), "--out", "{}", "--resume"]],
        "aobpr": [[*map(str, made["aobpr"]), "--out", "{}", "--resume"]],
        "export": [["(export)", "{}"]],
        "prepared": [["(load)", "{}"]],
    }
    return {name: commands[name] for name in kinds}


def _answer(command: list[str], folder: Path, out: Path) -> tuple[int, str, str]:
    """Exit code, answer and stderr of a command in this process."""
    import contextlib
    import io

    import bayesneg as bn
    from bayesneg.cli import main
    from bayesneg.errors import BayesnegError

    given = [part.replace("{out}", str(out)).replace("{}", str(folder)) for part in command]
    said, err = io.StringIO(), io.StringIO()
    if given[0].startswith("("):
        try:
            if given[0] == "(export)":
                model = bn.load_export(folder)
                users = model.run.split.train.user_ids[:20].tolist()
                return 0, repr([model.recommend(user, k=5) for user in users]), ""
            data = bn.load(folder)
            return 0, repr((data.n_users, data.n_items, bn.split(data, seed=0).train.indices.tobytes())), ""
        except BayesnegError as error:
            return 2, "", f"error: {error}\n"
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(err):
        try:
            main(given)
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
    if command[0] == "train":
        weights = folder / "weights.safetensors"
        return code, weights.read_bytes().hex() if code == 0 and weights.exists() else "", err.getvalue()
    written = out.with_suffix(".csv")
    return code, written.read_text() if code == 0 and written.exists() else said.getvalue(), err.getvalue()


def _judged(code: int, answer: str, err: str, right: str) -> str:
    """``same``, ``refused``, or what is wrong."""
    if "Traceback" in err or "panicked" in err:
        return f"traceback: {err[-400:]}"
    if code == 0:
        return "same" if answer == right else "another answer"
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    if code in (1, 2) and len(lines) == 1 and err.rstrip().splitlines()[-1].startswith("error: "):
        return "refused"
    return f"exit {code} without one sentence: {err[-400:]}"


def worker(place: str, seed: str, first: str, last: str, kinds: str) -> None:
    """Try damages, a line of JSON on stdout for each."""
    root, scratch = Path(place), Path(place) / f"worker {seed}-{first}"
    scratch.mkdir()
    commands: dict[str, list[list[str]]] = json.loads(kinds)
    right: dict[tuple[str, int], str] = {}
    for number in range(int(first), int(last)):
        rng = random.Random(f"{seed} {number}")
        name = rng.choice(sorted(commands))
        which = rng.randrange(len(commands[name]))
        folder, out = scratch / "damaged", scratch / "answer"
        if (name, which) not in right:
            _fresh(root / name, folder, out)
            code, right[name, which], err = _answer(commands[name][which], folder, out)
            assert code == 0, err
        _fresh(root / name, folder, out)
        what = f"{name}: {damage(folder, rng)}, {commands[name][which][0]}"
        sys.__stdout__.write(json.dumps({"begun": number, "what": what}) + "\n")  # in case of a crash
        sys.__stdout__.flush()
        before = _peak(reset=True)
        try:
            found = _judged(*_answer(commands[name][which], folder, out), right[name, which])
        except BaseException as error:
            found = f"{type(error).__name__}: {error!s:.300}"
        if _peak() - before > MOST:
            found = f"{(_peak() - before) >> 20} MiB of memory"
        sys.__stdout__.write(json.dumps({"done": number, "kind": name, "what": what, "found": found}) + "\n")
        sys.__stdout__.flush()


def _fresh(source: Path, folder: Path, out: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    out.with_suffix(".csv").unlink(missing_ok=True)
    shutil.copytree(source, folder)


def _peak(*, reset: bool = False) -> int:
    """The peak of this process's memory in bytes."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    found = re.search(r"VmHWM:\s+(\d+)", status.read_text())
    return int(found[1]) * 1024 if found else 0


def run(place: Path, count: int, seed: int, kinds: tuple[str, ...] = KINDS) -> int:
    """Damage ``count`` times; how often there was neither the right answer nor a refusal."""
    from enduring.commands import ONE_THREAD

    commands, tests = _prepared(place, kinds), str(Path(__file__).parents[1])
    outcomes: Counter[tuple[str, str]] = Counter()
    failures, first = [], 0
    while first < count:
        call = [sys.executable, "-c", WORKER.format(tests=tests), place, seed, first, count, json.dumps(commands)]
        process = subprocess.Popen(
            list(map(str, call)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **ONE_THREAD},
        )  # fmt: skip
        begun = None
        assert process.stdout is not None
        for line in process.stdout:
            said = json.loads(line)
            if "begun" in said:
                begun = said
                continue
            begun, first = None, said["done"] + 1
            good = said["found"] in ("same", "refused")
            outcomes[said["kind"], said["found"] if good else "failed"] += 1
            if not good:
                failures.append(f"{said['what']}: {said['found']}")
        _, err = process.communicate()
        if begun is not None:
            failures.append(f"{begun['what']}: the process ended with {process.returncode}: {err[-300:]}")
            first = begun["begun"] + 1
        elif first < count:
            raise SystemExit(f"the worker ended early: {err[-2000:]}")
    for text in failures[:40]:
        print(text)
    for kind in sorted({kind for kind, _ in outcomes}):
        print(f"{kind}: " + ", ".join(f"{n} {found}" for (one, found), n in sorted(outcomes.items()) if one == kind))
    print(f"{count} damages, {len(failures)} with neither the right answer nor a refusal")
    return len(failures)
