"""The size of an install, its time, the time of an import, and the licences of all that it brings.

    python -m benchmarks.packaging.bench_install [--pythons python3.11,python3.13] [--extras tune,serve] [--only mlflow]

For each Python the wheel is installed into a clean environment with only what it requires; then each extra into an
environment above it, so that what the extra adds is measured. Downloads come from pip's cache or from the index: times
are of one run and depend on both. Extras that need torch are measured with the Python that runs this. ``--only``
measures the extras that it names with the first Python, and keeps what else is recorded; ``--untimed`` records sizes
and licences alone, for a machine that is busy.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import read_result, write_result
from benchmarks.packaging.environments import Built, Environment, build, extras, run

NOT_FOR_USERS = ("dev", "docs", "bench")
REPEATS = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    users = [name for name in extras() if name not in NOT_FOR_USERS]
    parser.add_argument("--pythons", default=sys.executable, help="the Pythons to install for, separated by commas")
    parser.add_argument("--extras", default=",".join(users), help="the extras to install, separated by commas")
    parser.add_argument("--only", default="", help="the extras to measure anew, in a record that keeps the others")
    parser.add_argument("--untimed", action="store_true", help="record no times: others use the machine")
    given = parser.parse_args()
    wanted = given.only or given.extras
    if unknown := [name for name in wanted.split(",") if name and name not in extras()]:
        parser.error(f"no extra is called {', '.join(unknown)}; pyproject.toml has {', '.join(extras())}")
    recorded = read_result("packaging/bench_install") if given.only else None
    if given.only and recorded is None:
        parser.error("--only adds to a record, and there is none yet; leave it out to measure everything")
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built = build(folder / "dist")
        files = {"wheel": built.wheel.stat().st_size, "sdist": built.sdist.stat().st_size}
        for place, python in enumerate(given.pythons.split(",")[: 1 if given.only else None]):
            version = run(python, "-c", "import platform; print(platform.python_version())").strip()
            own = place == 0
            names = [extra for extra in wanted.split(",") if extra and (own or not _needs_torch(extra))]
            found[version] = measured(folder / version, python, built, names, timed=not given.untimed)
    if recorded is not None:
        found = with_recorded(recorded["pythons"], found)
    print(write_result(__file__, {"files": files, "pythons": found}))


def with_recorded(recorded: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """The record with the extras that were measured anew; the required packages keep what is recorded of them.

    Args:
        recorded: Version of Python → extra → what was measured before.
        found: The same, measured now.
    """
    ((version, lines),) = found.items()
    if version not in recorded:
        raise SystemExit(f"the record has Python {', '.join(recorded)} and not {version}; leave out --only")
    merged = {**recorded[version], **{extra: line for extra, line in lines.items() if extra}}
    return {**recorded, version: merged}


def measured(folder: Path, python: str, built: Built, names: list[str], *, timed: bool) -> dict[str, Any]:
    """What the required packages and each extra take, with one Python; seconds only where ``timed``."""

    def line(environment: Environment, seconds: float) -> dict[str, Any]:
        times = {"seconds": seconds, **_imports(environment, folder)} if timed else {}
        return {**times, "packages": environment.installed()}

    folder.mkdir()
    base = Environment(folder / "required", python)
    seconds = _timed(lambda: base.install(built.wheel))
    lines = {"": line(base, seconds)}
    print("required", round(seconds, 1), file=sys.stderr)
    for extra in names:
        above = Environment(folder / extra, python, beneath=base)
        seconds = _timed(lambda above=above, extra=extra: above.install(f"bayesneg[{extra}]"))
        lines[extra] = line(above, seconds)
        print(extra, round(seconds, 1), file=sys.stderr)
    return lines


def _imports(environment: Environment, folder: Path) -> dict[str, float]:
    """Median seconds of importing bayesneg beyond those of starting Python, and of the command's help."""

    def of(*arguments: str) -> float:
        return statistics.median(_timed(lambda: environment.run(*arguments, folder=folder)) for _ in range(REPEATS))

    empty = of("-c", "pass")
    return {"import": of("-c", "import bayesneg") - empty, "help": of("-m", "bayesneg", "--help") - empty}


def _timed(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _needs_torch(extra: str) -> bool:
    return any(line.startswith("torch") for line in extras()[extra])


if __name__ == "__main__":
    main()
