"""docs/how-to/install.md: what an install brings, from ``benchmarks.packaging.bench_install``."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.machine import ROOT, read_result
from benchmarks.pages.publish import keep
from benchmarks.pages.text import MADE, folded, page, table

USES: Final = {
    "": "everything but what follows",
    "torch": "TorchMF, LightGCN, modules of your own, BNS in a loop of your own, several processes",
    "tune": "searches of settings",
    "postgres": "searches on a PostgreSQL database",
    "index": "exports with an approximate index",
    "serve": "the HTTP server",
    "tensorboard": "`--track tensorboard:DIR`",
    "mlflow": "`--track mlflow:URI`",
    "wandb": "`--track wandb:PROJECT`",
    "integrations": "sentence-transformers, PyKEEN, PyTorch Geometric, Lightning, and torch",
}


def publish(*, check: bool) -> None:
    found = read_result("packaging/bench_install")
    assert found is not None
    keep(ROOT / "docs" / "how-to" / "install.md", _page(found), check=check)


def _page(found: dict[str, Any]) -> str:
    first, *others = found["pythons"].items()
    version, lines = first
    files = found["files"]
    base = lines[""]
    return page(
        "# Install",
        "From a checkout, with Python 3.11 to 3.13:",
        "```sh\npip install .                    # or: pip install '.[torch,tune]'\n```",
        "The package is pure Python: a wheel of "
        f"{_kb(files['wheel'])} kB, an sdist of {_kb(files['sdist'])} kB. With what it requires an install takes "
        f"{_mb(base)} MB; `import bayesneg` takes {1000 * base['import']:.0f} ms beyond starting Python, since a module "
        "is imported when a name of it is first used.",
        f"What each extra adds, with Python {version}:",
        table(
            ["extra", "for", "packages", "MB", "install, s", "import, ms", "`bayesneg --help`, ms"],
            [_row(name, line) for name, line in lines.items()],
            text_columns=2,
        ),
        *(_other(version, lines) for version, lines in others),
        "`torch` is measured with the build for CPUs. On Linux pip takes the build for NVIDIA GPUs unless told otherwise, "
        "which brings several gigabytes of CUDA under a licence of NVIDIA that is not open; the page of PyTorch on installing names the index of the CPU build. "
        "`constraints.txt` has the exact versions that the tests ran with: `pip install -c constraints.txt .`. Seconds "
        f"include downloads or pip's cache, one run on {found['machine']['cores']} cores; a dash: measured on a busy machine, "
        "sizes and licences only.",
        "## Licences",
        "bayesneg is Apache-2.0. What the packages state of themselves in their metadata:",
        folded(
            f"{len(_licences(found))} packages",
            table(["package", "version", "licence", "brought by"], _licences(found), text_columns=4),
        ),
        f"{MADE} Measured by `python -m benchmarks.packaging.bench_install`.",
    )


def _row(name: str, line: dict[str, Any]) -> list[str]:
    label = f"`[{name}]`" if name else "required"
    units = {"seconds": 1, "import": 1000, "help": 1000}
    times = [f"{unit * line[name]:.0f}" if name in line else "–" for name, unit in units.items()]
    return [label, USES.get(name, ""), str(len(line["packages"])), _mb(line), *times]


def _other(version: str, lines: dict[str, Any]) -> str:
    base = lines[""]
    return (
        f"With Python {version}, required packages only: {_mb(base)} MB, installed in {base['seconds']:.0f} s, import "
        f"{1000 * base['import']:.0f} ms, help {1000 * base['help']:.0f} ms."
    )


def _licences(found: dict[str, Any]) -> list[list[str]]:
    rows: dict[str, list[str]] = {}
    for name, line in next(iter(found["pythons"].values())).items():
        for package, facts in line["packages"].items():
            rows.setdefault(package, [package, facts["version"], facts["licence"], name or "required"])
    return sorted(rows.values(), key=lambda row: row[0].lower())


def _mb(line: dict[str, Any]) -> str:
    return f"{sum(facts['bytes'] for facts in line['packages'].values()) / 1e6:,.0f}"


def _kb(size: int) -> str:
    return f"{size / 1e3:,.0f}"
