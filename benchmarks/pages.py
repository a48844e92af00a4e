"""What every script that writes a page of docs/ does alike: ``--check`` it, or write it if it is not current."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

HOME: Final = Path(__file__).parent.parent


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
