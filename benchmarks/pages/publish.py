"""Write a page, its tables and figures where they changed, or check that they are current."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.machine import ROOT

DOCS: Final = ROOT / "docs" / "explanation"
TAG: Final = re.compile(r"<[^>]*>")
# Ids in an SVG depend on the last bits of its numbers.
IDS: Final = re.compile(r'\b(?:id="[^"]*"|clip-path="[^"]*")|href="#[^"]*"|url\(#[^)]*\)')
GEOMETRY: Final = re.compile(r'\b(d|points|transform|viewBox|[xyr]|[xy][12]|c[xy]|width|height)="([^"]*)"')
NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
TOLERANCE: Final = 0.5  # points by which a line may be elsewhere on another machine


def keep(path: Path, text: str, *, check: bool) -> None:
    """Write the file unless it is current; with ``check`` exit 1 instead."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    if check:
        raise SystemExit(f"{path.name} is out of date: python -m benchmarks.pages")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"{path.name} written", file=sys.stderr)


def keep_pictures(folder: Path, draw: Callable[[Path], None], *, check: bool) -> None:
    """Let ``draw`` fill a folder with SVGs and keep those that look different; with ``check`` exit 1 instead.

    What only the script of a report reads is left out.
    """
    from bayesneg.report.figures.canvas import still

    with TemporaryDirectory() as drawn:
        draw(Path(drawn))
        made = {path.name: compact(still(path.read_text(encoding="utf-8"))) for path in Path(drawn).glob("*.svg")}
    known = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.svg")}
    same = {name for name in made.keys() & known if looks_like(made[name], known[name])}
    stale = sorted((made.keys() | known) - same)
    if stale and check:
        raise SystemExit(f"{folder.name} is out of date: {', '.join(stale)}: python -m benchmarks.pages")
    for name in stale:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).unlink(missing_ok=True)
        if name in made:
            (folder / name).write_text(made[name], encoding="utf-8")
        print(f"{folder.name}/{name} {'drawn' if name in made else 'deleted'}", file=sys.stderr)


def compact(svg: str) -> str:
    """The same picture in fewer bytes: one decimal, no metadata, no line breaks in a path."""
    svg = re.sub(r"<metadata>.*?</metadata>|<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r' transform="rotate\(-?0 [^"]*"', "", svg)
    svg = GEOMETRY.sub(lambda found: f'{found[1]}="{_short(found[1], found[2])}"', svg)
    svg = re.sub(r"<g>\s*(<use [^>]*/>)\s*</g>", r"\1", svg)
    return re.sub(r"\n\s*", "\n", svg).strip() + "\n"


def _short(name: str, value: str) -> str:
    if name == "transform":  # scales need their digits
        return value
    rounded = NUMBER.sub(lambda number: f"{round(float(number[0]), 1):g}", value)
    return re.sub(r"\s+", " ", rounded).strip()


def looks_like(one: str, other: str) -> bool:
    """Whether two SVGs have the same content, with all lines at the same places within :data:`TOLERANCE`."""
    (ours, here), (theirs, there) = _read(one), _read(other)
    return ours == theirs and all(abs(mine - yours) <= TOLERANCE for mine, yours in zip(here, there, strict=True))


def _read(svg: str) -> tuple[str, list[float]]:
    """The SVG without ids and coordinates, and the coordinates."""
    places: list[float] = []

    def without_places(attribute: re.Match[str]) -> str:
        places.extend(map(float, NUMBER.findall(attribute[2])))
        return f'{attribute[1]}="{NUMBER.sub("0", attribute[2])}"'

    return TAG.sub(lambda tag: GEOMETRY.sub(without_places, IDS.sub("", tag[0])), svg), places
