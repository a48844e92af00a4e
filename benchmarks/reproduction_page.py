"""docs/reproduction.md and its figures, from the records in results/reproduction/ alone.

python benchmarks/reproduction_page.py            write the page and docs/images/reproduction/*.svg
python benchmarks/reproduction_page.py --check    exit 1 if the page is not what the records give
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bayesneg.lab.document import chapters, document
from bayesneg.lab.reproduce import DRAWN, THEORY, draw_figure
from bayesneg.runs import ledger
from bayesneg.runs.ledger import Entry

HOME: Final = Path(__file__).parent.parent
RECORDS: Final = HOME / "benchmarks" / "results" / "reproduction"
PAGE: Final = HOME / "docs" / "reproduction.md"
IMAGES: Final = HOME / "docs" / "images" / "reproduction"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page is out of date")
    check = parser.parse_args().check
    found = ledger.read(sorted(RECORDS.glob("*.jsonl")))
    if not check:
        draw(found)
    pictures = {path.stem: path.relative_to(PAGE.parent).as_posix() for path in IMAGES.glob("*.svg")}
    text = document(found, pictures)
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return
    if check:
        print(f"{PAGE.relative_to(HOME)} is out of date", file=sys.stderr)
        raise SystemExit(1)
    PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE.relative_to(HOME)} written", file=sys.stderr)


def draw(found: Mapping[str, Entry]) -> None:
    """The figures whose cells are there, as SVG."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name in THEORY:
        draw_figure(name, None, IMAGES / name, kinds=("svg",))
    for chapter in chapters(found):
        if chapter.name in DRAWN and chapter.studies:
            draw_figure(chapter.name, chapter.studies[0], IMAGES / chapter.name, kinds=("svg",))


if __name__ == "__main__":
    main()
