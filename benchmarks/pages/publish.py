"""Write a page and its figures where they changed, or check that they are current."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

HOME: Final = Path(__file__).parents[2]
TAG: Final = re.compile(r"<[^>]*>")
# Names of an SVG's parts follow from the last bit of its numbers.
NAMES: Final = re.compile(r'\bid="[^"]*"|href="#[^"]*"|url\(#[^)]*\)')
GEOMETRY: Final = re.compile(r'\b(d|points|transform|viewBox|[xyr]|[xy][12]|c[xy]|width|height)="([^"]*)"')
NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
SLACK: Final = 0.5  # points by which a line may lie elsewhere on another machine


def keep(path: Path, text: str, *, check: bool) -> None:
    """Write the page unless it is current; with ``check`` exit 1 instead."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    if check:
        print(f"{path.relative_to(HOME)} is out of date", file=sys.stderr)
        raise SystemExit(1)
    path.write_text(text, encoding="utf-8")
    print(f"{path.relative_to(HOME)} written", file=sys.stderr)


def keep_pictures(folder: Path, draw: Callable[[Path], None], *, check: bool) -> None:
    """Have ``draw`` fill a folder with SVGs and keep those that look different; with ``check`` exit 1 instead."""
    with TemporaryDirectory() as drawn:
        draw(Path(drawn))
        made = {path.name: path.read_text(encoding="utf-8") for path in Path(drawn).glob("*.svg")}
    known = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.svg")}
    same = {name for name in made.keys() & known if looks_like(made[name], known[name])}
    stale = sorted((made.keys() | known) - same)
    if stale and check:
        print(f"{folder.relative_to(HOME)} is out of date: {', '.join(stale)}", file=sys.stderr)
        raise SystemExit(1)
    for name in stale:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).unlink(missing_ok=True)
        if name in made:
            (folder / name).write_text(made[name], encoding="utf-8")
        print(f"{(folder / name).relative_to(HOME)} {'drawn' if name in made else 'deleted'}", file=sys.stderr)


def looks_like(one: str, other: str) -> bool:
    """Whether two SVGs say the same, and have all lines at the same places but for :data:`SLACK`."""
    (ours, here), (theirs, there) = _read(one), _read(other)
    return ours == theirs and all(abs(mine - yours) <= SLACK for mine, yours in zip(here, there, strict=True))


def _read(svg: str) -> tuple[str, list[float]]:
    """The SVG without names and places, and the places."""
    places: list[float] = []

    def without_places(attribute: re.Match[str]) -> str:
        places.extend(map(float, NUMBER.findall(attribute[2])))
        return f'{attribute[1]}="{NUMBER.sub("0", attribute[2])}"'

    return TAG.sub(lambda tag: GEOMETRY.sub(without_places, NAMES.sub("", tag[0])), svg), places
