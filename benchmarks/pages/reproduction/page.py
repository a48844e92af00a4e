"""docs/explanation/reproduction.md, its tables and figures, from the archives in results/reproduction/."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from bayesneg.reproduction.reproduce import DRAWN, THEORY, draw_figure
from benchmarks import archive
from benchmarks.machine import RESULTS
from benchmarks.pages.publish import DOCS, keep, keep_pictures
from benchmarks.pages.reproduction.document import Chapter, chapters, document, numbers, paired_tests
from benchmarks.pages.text import comma_separated

IMAGES: Final = DOCS / "images" / "reproduction"


def publish(*, check: bool) -> None:
    found = archive.read(*sorted((RESULTS / "reproduction").glob("*.parquet")))
    made = chapters(found)
    keep_pictures(IMAGES, partial(draw, made), check=check)
    pictures = {path.stem: path.relative_to(DOCS).as_posix() for path in IMAGES.glob("*.svg")}
    keep(DOCS / "reproduction.md", document(found, pictures), check=check)
    keep(DOCS / "tables" / "reproduction.csv", comma_separated(numbers(made)), check=check)
    keep(DOCS / "tables" / "reproduction-tests.csv", comma_separated(paired_tests(made)), check=check)


def draw(made: Sequence[Chapter], folder: Path) -> None:
    """The figures whose cells are there, as SVG."""
    for name in THEORY:
        draw_figure(name, None, folder / name, kinds=("svg",))
    for chapter in made:
        if chapter.name in DRAWN and chapter.studies:
            draw_figure(chapter.name, chapter.studies[0], folder / chapter.name, kinds=("svg",))
