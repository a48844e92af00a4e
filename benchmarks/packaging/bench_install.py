"""The size of an install, its time, the time of an import, and the licences of all that it brings.

    python -m benchmarks.packaging.bench_install [--pythons python3.11,python3.13] [--extras tune,serve]

For each Python the wheel is installed into a clean environment with only what it requires; then each extra into an
environment above it, so that what the extra adds is measured. Downloads come from pip's cache or from the index: times
are of one run and depend on both. Extras that need torch are measured with the Python that runs this.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import write_result
from benchmarks.packaging.environments import Built, Environment, build, extras, run

NOT_FOR_USERS = ("dev", "docs", "bench", "integrations")
REPEATS = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    users = [name for name in extras() if name not in NOT_FOR_USERS]
    parser.add_argument("--pythons", default=sys.executable, help="the Pythons to install for, separated by commas")
    parser.add_argument("--extras", default=",".join(users), help="the extras to install, separated by commas")
    given = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        built = build(folder / "dist")
        files = {"wheel": built.wheel.stat().st_size, "sdist": built.sdist.stat().st_size}
        for place, python in enumerate(given.pythons.split(",")):
            version = run(python, "-c", "import platform; print(platform.python_version())").strip()
            own = place == 0
            names = [extra for extra in given.extras.split(",") if extra and (own or not _needs_torch(extra))]
            found[version] = measured(folder / version, python, built, names)
    print(write_result(__file__, {"files": files, "pythons": found}))


def measured(folder: Path, python: str, built: Built, names: list[str]) -> dict[str, Any]:
    """What the required packages and each extra take, with one Python."""
    folder.mkdir()
    base = Environment(folder / "required", python)
    seconds = _timed(lambda: base.install(built.wheel))
    lines: dict[str, Any] = {"": {"seconds": seconds, "packages": base.installed(), **_imports(base, folder)}}
    print("required", round(seconds, 1), file=sys.stderr)
    for extra in names:
        above = Environment(folder / extra, python, beneath=base)
        seconds = _timed(lambda above=above, extra=extra: above.install(f"bayesneg[{extra}]"))
        lines[extra] = {"seconds": seconds, "packages": above.installed(), **_imports(above, folder)}
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
