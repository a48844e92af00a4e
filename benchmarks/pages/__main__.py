"""Write the pages of ``docs/`` that are made from results, or check that they are current.

python -m benchmarks.pages                       write all of them
python -m benchmarks.pages study --check         exit 1 if docs/explanation/study.md or one of its figures is out of date
"""

from __future__ import annotations

import argparse
from importlib import import_module

PAGES = ("results", "speed", "reproduction", "audit_kuairec", "weighted_pools", "study", "defaults", "install")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=f"{', '.join(PAGES)}; all of them unless given")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is out of date")
    given = parser.parse_args()
    if unknown := set(given.pages) - set(PAGES):
        parser.error(f"PAGE must be one of {', '.join(PAGES)}, got {', '.join(sorted(unknown))}")
    for page in given.pages or PAGES:
        import_module(f"benchmarks.pages.{page}").publish(check=given.check)


if __name__ == "__main__":
    main()
