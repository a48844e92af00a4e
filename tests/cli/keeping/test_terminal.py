"""Nothing in data or in the names of files controls the terminal."""

from __future__ import annotations

import json
import re

import pytest

from bayesneg.cli.output import say, show, show_json, show_table
from bayesneg.progress import bars, printable

EVIL = "item\x1b[31m\x9b2J\x07\x7f\u202e\r"
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")


def test_control_characters_are_written_out():
    assert printable("a\x1b[31m\x9b\u202e\tb\n") == "a\\x1b[31m\\x9b\\u202e\tb\n"
    assert printable("ünï 日本 [rec] \\x1b") == "ünï 日本 [rec] \\x1b"
    assert printable("two\nlines", keep="") == "two\\nlines"


@pytest.mark.parametrize(
    "write",
    [
        say,
        show,
        lambda text: show_json({text: text}),
        lambda text: show_table(text, [text], [[text]]),
        lambda text: _bar(text),
    ],
    ids=["note", "result", "json", "table", "progress"],
)
def test_no_way_to_the_terminal_lets_them_through(write, capsys):
    write(EVIL)
    said = "".join(capsys.readouterr())
    assert "item" in said
    assert not CONTROL.search(said)


def _bar(label: str) -> None:
    with bars(True, {label: 1}, log_end=True) as update:
        update(label, 1, label)


def test_json_still_says_the_same(capsys):
    show_json({"id": EVIL})
    assert json.loads(capsys.readouterr().out) == {"id": EVIL}


def test_identifiers_of_a_table_are_shown_and_not_obeyed(bayesneg, place):
    rows = [f"u\x1b[2J{user},i\x9b31m{item}" for user in range(8) for item in range(user % 3, 12, 2)]
    (place / "evil.csv").write_text("\n".join(["user,item", *rows, ""]))
    assert bayesneg("train", "evil.csv", "--epochs", 1, "--out", "run", "-q").code == 0
    found = bayesneg("recommend", "run", "--user", "u\x1b[2J1", "-k", 3)
    assert "i\\x9b31m" in found.out
    assert not CONTROL.search(found.out + found.err)
    assert not CONTROL.search(bayesneg("recommend", "run", "--user", "\x1b[2J").error)
