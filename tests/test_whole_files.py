"""Files appear whole, under names that nobody can foresee, and replace nothing but files."""

from __future__ import annotations

import ast
import os
import secrets
import stat
from pathlib import Path

import polars as pl
import pytest

from bayesneg import whole_files
from bayesneg.data.prepared import files as prepared
from bayesneg.errors import InputError
from bayesneg.recommendation.table_files import write_frames
from bayesneg.report.figures.export import export
from bayesneg.report.pages import write_page
from bayesneg.runs import folder as runs

SOURCE = Path(__file__).parent.parent / "src" / "bayesneg"
FRAME = pl.DataFrame({"user": [1, 2], "item": [3, 4]})
WRITERS = {  # how each kind of file is written
    "page": lambda path: write_page("<p>new</p>", path),
    "recommendations": lambda path: write_frames([FRAME], path),
    "figure": lambda path: export(lambda figure: None, path.with_suffix(""), height=1.0, kinds=["svg"]),
    "run": lambda path: runs.write_json(path, {"new": 1}),
    "line": lambda path: runs.append_line(path, {"new": 1}),
    "prepared": lambda path: prepared.write_json(path, {"new": 1}),
    "prepared table": lambda path: prepared.write_table(path, FRAME),
    "prepared array": lambda path: prepared.write_array(path, FRAME["user"].to_numpy()),
}
ENDING = {"recommendations": ".csv", "figure": ".svg"}
WHOLE = [name for name in WRITERS if name != "line"]


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("special", ["link", "pipe"])
def test_no_writer_replaces_a_link_or_a_pipe(kind, special, tmp_path):
    path, victim = tmp_path / f"out{ENDING.get(kind, '.file')}", tmp_path / "victim"
    victim.write_text("precious")
    path.symlink_to(victim) if special == "link" else os.mkfifo(path)
    with pytest.raises(InputError, match=f"{path} is a (symbolic link|named pipe), which would be replaced; name "):
        WRITERS[kind](path)
    assert victim.read_text() == "precious"
    assert path.is_symlink() if special == "link" else stat.S_ISFIFO(path.lstat().st_mode)
    assert {*tmp_path.iterdir()} == {path, victim}


def test_a_line_is_not_appended_through_a_link(tmp_path):
    (tmp_path / "lines").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="lines"):
        WRITERS["line"](tmp_path / "lines")
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize("kind", WHOLE)
def test_a_link_planted_under_a_guessed_temporary_name_is_not_written_through(kind, tmp_path):
    path, victim = tmp_path / f"out{ENDING.get(kind, '.file')}", tmp_path / "victim"
    victim.write_text("precious")
    for name in (f".{path.name}.part", f"{path.name}.partial", f".{path.name}.{os.getpid()}.part"):
        (tmp_path / name).symlink_to(victim)
    WRITERS[kind](path)
    assert path.is_file()
    assert not path.is_symlink()
    assert victim.read_text() == "precious"


def test_a_temporary_name_that_was_guessed_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(secrets, "token_hex", lambda _: "0" * 16)
    victim, path = tmp_path / "victim", tmp_path / "out.json"
    whole_files.unfinished(path).symlink_to(victim)
    with pytest.raises(FileExistsError):
        runs.write_json(path, 1)
    assert not victim.exists()


def test_names_cannot_be_foreseen_and_are_known_as_ours(tmp_path):
    names = {whole_files.unfinished(tmp_path / ("x" * 250)) for _ in range(20)}
    assert len(names) == 20
    assert all(map(whole_files.is_unfinished, names))
    assert not whole_files.is_unfinished(tmp_path / ".notes.part")


def test_the_bytes_are_on_the_disk_before_the_name_and_the_name_before_the_return(tmp_path, monkeypatch):
    path, done = tmp_path / "run.json", []
    fsync, replace = os.fsync, Path.replace

    def synced(handle: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        done.append("folder" if is_folder else f"file of {os.fstat(handle).st_size} bytes")
        fsync(handle)

    def renamed(self: Path, target: Path) -> Path:
        done.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    for kind in WHOLE:
        target = path.with_suffix(ENDING.get(kind, ".file"))
        done.clear()
        WRITERS[kind](target)
        assert done == [f"file of {target.stat().st_size} bytes", "rename", "folder"], kind


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_fails_leaves_the_old_file_and_nothing_else(error, tmp_path):
    path = tmp_path / "metrics.json"
    path.write_text("old")

    def half(part: Path) -> None:
        part.write_text("ne")
        raise error

    with pytest.raises(type(error)) as raised:
        whole_files.write_whole(path, half)
    if isinstance(raised.value, OSError):
        assert raised.value.filename == str(path)
    assert path.read_text() == "old"
    assert [*tmp_path.iterdir()] == [path]


def test_files_have_the_rights_that_the_person_gives_new_files(tmp_path):
    before = os.umask(0o027)
    try:
        runs.write_json(tmp_path / "run.json", 1)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "run.json").stat().st_mode) == 0o640


def test_what_a_killed_process_left_is_removed_and_does_not_occupy_a_folder(tmp_path):
    left = whole_files.unfinished(tmp_path / "run.json")
    left.write_text("{")
    runs.check_free(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    whole_files.remove_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_nothing_else_opens_a_file_for_writing():
    """A write is to ``part``, which ``whole_files`` made, or opens without following links."""
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _writes(node) and path.name != "whole_files.py":
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno}: {ast.unparse(node)[:60]}")
    assert found == []


def _writes(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("write_text", "write_bytes"):
        return ast.unparse(call.func.value) != "part"
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name != "open" or any(keyword.arg == "opener" for keyword in call.keywords):
        return False
    modes = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    on_part = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "part"
    return not on_part and any(set(mode) <= set("rwax+bt") and set(mode) & set("wax+") for mode in modes)
