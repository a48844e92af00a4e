"""What every script that writes a page of docs/ does alike: ``--check`` it and its pictures, or write what is stale."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

HOME: Final = Path(__file__).parent.parent
NAMES: Final = re.compile(
    r'id="[^"]*"|href="#[^"]*"|url\(#[^)]*\)'
)  # of parts of an SVG: they follow from the last bit of its numbers
NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
SLACK: Final = 0.5  # points by which a number may differ on another machine


def only_check(doc: str | None) -> bool:
    """Whether the script, whose docstring is ``doc``, was asked to write nothing."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page is out of date")
    return bool(parser.parse_args().check)


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
    folder.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (folder / name).unlink(missing_ok=True)
        if name in made:
            (folder / name).write_text(made[name], encoding="utf-8")


def looks_like(one: str, other: str) -> bool:
    """Whether two SVGs differ in nothing that can be seen."""
    ours, theirs = (NAMES.sub("", text) for text in (one, other))
    if NUMBER.sub("0", ours) != NUMBER.sub("0", theirs):
        return False
    pairs = zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True)
    return all(abs(float(mine) - float(yours)) <= SLACK for mine, yours in pairs)
