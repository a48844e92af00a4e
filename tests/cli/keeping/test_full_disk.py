"""A full or read-only disk: one sentence with the file, no half-written output, the last good state intact."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bayesneg import whole_files
from bayesneg.runs import folder as files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files by a system call")

# one process runs many commands: importing the libraries takes the time
CHILD = """
import json, os, resource, sys
from bayesneg.cli import main
limit, given = int(sys.argv[1]), json.loads(sys.argv[2])
os.environ["NUMBA_CACHE_DIR"] = os.environ.get("NUMBA_CACHE_DIR", "")
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
for arguments in given:
    try:
        main(arguments)
    except SystemExit as ended:
        print(f"ended {ended.code}", file=sys.stderr)
"""


def on_a_full_disk(limit: int, *commands: list[object]) -> list[tuple[int, str]]:
    """Exit code and last words of commands, in a process whose files may have so many bytes."""
    given = json.dumps([list(map(str, command)) for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(limit), given], check=False, capture_output=True, text=True, timeout=200
    )
    assert "Traceback" not in done.stderr, done.stderr
    *ends, rest = done.stderr.split("ended ")
    codes = [int(part.split("\n", 1)[0]) for part in (*ends[1:], rest)]
    words = [ends[0], *(part.split("\n", 1)[1] for part in ends[1:])]
    return list(zip(codes, words, strict=True))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_command_ends_with_a_sentence_and_without_half_a_file(finished, place):
    run = Path(shutil.copytree(finished, place / "run"))
    data = finished.parent / "ratings.csv"
    before = contents(place)
    few = ["--samplers", "rns", "--epochs", "1", "-q"]
    commands = {
        "new": ["train", data, "--epochs", 2, "--out", "new", "-q"],
        "rows.csv": ["evaluate", run, "--per-user", "rows.csv"],
        "rows.parquet": ["evaluate", run, "--per-user", "rows.parquet"],
        "page.html": ["report", run, "-o", "page.html"],
        "all.csv": ["recommend", run, "--all-users", "--out", "all.csv", "-k", 20, "-q"],
        "all.parquet": ["recommend", run, "--all-users", "--out", "all.parquet", "-k", 20, "-q"],
        "exported": ["export", run, "exported"],
        "compared.html": ["compare", data, *few, "--seeds", 2, "--report", "compared.html"],
        "audited": ["audit", data, *few, "--seeds", 1, "--out", "audited"],
        "searched": ["tune", data, *few, "--trials", 1, "--seeds", 1, "--out", "searched"],
    }
    for name, (code, said) in zip(commands, on_a_full_disk(300, *commands.values()), strict=True):
        last = said.strip().splitlines()[-1]
        assert code == 2, (name, said)
        assert last.startswith("error: "), (name, said)
        assert name in last
        assert last.endswith("; check the path and the free disk space")
    left = {name: content for name, content in contents(place).items() if name not in before}
    assert not [name for name in left if not name.startswith(("audited", "searched/"))], "what --resume needs"
    assert contents(place).items() >= before.items()


def test_resuming_on_a_full_disk_leaves_a_good_run_good(bayesneg, finished, place):
    data = finished.parent / "ratings.csv"
    shutil.copytree(finished, place / "run")
    before = contents(place / "run")
    again = ["train", data, "--epochs", 5, "--out", "run", "--resume", "-q"]
    ((code, said),) = on_a_full_disk(300, again)
    assert code == 2
    assert "damaged" not in said
    assert "File too large; check the path and the free disk space" in said
    after = contents(place / "run")
    assert {name: after[name] for name in before if name != "run.toml"} == {
        name: content for name, content in before.items() if name != "run.toml"
    }
    assert bayesneg(*again).code == 0


def test_resuming_in_a_read_only_folder_names_it(bayesneg, finished, place, monkeypatch):
    """Rights do not bind root, so that the system's answer is given by hand."""

    def refused(path: Path) -> None:
        raise OSError(30, "Read-only file system", str(path))

    shutil.copytree(finished, place / "run")
    monkeypatch.setattr(whole_files, "create", refused)
    data = finished.parent / "ratings.csv"
    said = bayesneg("train", data, "--epochs", 5, "--out", "run", "--resume", "-q").error
    assert "Read-only file system" in said
    assert "damaged" not in said
    assert (place / "run" / files.METRICS).exists()
