"""docs/reproduction.md and its figures, from the records in results/reproduction/ alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from bayesneg.reproduction.reproduce import DRAWN, THEORY, draw_figure
from bayesneg.runs.ledger import Entry
from benchmarks import archive
from benchmarks.pages.publish import HOME, keep, keep_pictures
from benchmarks.pages.reproduction_text import chapters, document

RECORDS: Final = HOME / "benchmarks" / "results" / "reproduction"
PAGE: Final = HOME / "docs" / "reproduction.md"
IMAGES: Final = HOME / "docs" / "images" / "reproduction"


def publish(*, check: bool) -> None:
    found = archive.read(*sorted(RECORDS.glob("*.parquet")))
    keep_pictures(IMAGES, partial(draw, found), check=check)
    pictures = {path.stem: path.relative_to(PAGE.parent).as_posix() for path in IMAGES.glob("*.svg")}
    keep(PAGE, document(found, pictures), check=check)


def draw(found: Mapping[str, Entry], folder: Path) -> None:
    """The figures whose cells are there, as SVG."""
    for name in THEORY:
        draw_figure(name, None, folder / name, kinds=("svg",))
    for chapter in chapters(found):
        if chapter.name in DRAWN and chapter.studies:
            draw_figure(chapter.name, chapter.studies[0], folder / chapter.name, kinds=("svg",))
