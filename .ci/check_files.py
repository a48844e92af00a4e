"""Check text files before a commit: spacing, conflict markers, size, and the syntax of TOML, JSON and YAML."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

LARGEST = 500_000  # bytes; results are kept compressed and small
CONFLICT = re.compile(r"^(<{7} |={7}$|>{7} )", flags=re.MULTILINE)


def faults(path: Path) -> list[str]:
    """What is wrong with one file, a sentence each."""
    found = []
    if path.stat().st_size > LARGEST:
        found.append(f"has {path.stat().st_size:,} bytes; at most {LARGEST:,} are committed")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return [*found, "is not UTF-8"]
    if "\r" in text:
        found.append("has carriage returns; lines end with a line feed")
    if text and not text.endswith("\n"):
        found.append("does not end with a newline")
    if path.suffix in {".py", ".toml", ".yml", ".yaml", ".cff"} and re.search(r"[ \t]+$", text, flags=re.MULTILINE):
        found.append("has trailing white space")
    if CONFLICT.search(text):
        found.append("has the markers of a merge conflict")
    return [*found, *syntax(path, text)]


def syntax(path: Path, text: str) -> list[str]:
    """The error of the format that a file's ending names, if it has one."""
    try:
        if path.suffix == ".toml":
            tomllib.loads(text)
        elif path.suffix == ".json":
            json.loads(text)
        elif path.suffix in {".yml", ".yaml", ".cff"}:
            import yaml  # installed with the extra `tune`

            yaml.safe_load(text)
    except Exception as error:
        return [f"is not valid {path.suffix[1:]}: {error}"]
    return []


def main() -> int:
    """Check the files named on the command line; 1 if any has a fault."""
    wrong = [f"{name} {fault}" for name in sys.argv[1:] for fault in faults(Path(name))]
    sys.stderr.writelines(f"{line}\n" for line in wrong)
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
