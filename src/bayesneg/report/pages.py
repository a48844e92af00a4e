"""One HTML file that opens offline: what a page is made of, and how it is rendered and written.

Pages are jinja2 templates with autoescape on: every label is text. Nothing is fetched (a content security policy
forbids it). A page reads without its script, which sorts and filters tables, tells the values of charts, hides their
series, switches between light and dark, and shows the drill-down of an audit.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bayesneg.errors import InputError
from bayesneg.whole_files import write_text

if TYPE_CHECKING:
    import jinja2

SCRIPTS: Final = ("theme.js", "tables.js", "axes.js", "charts.js", "explorer.js")  # one after the other


@dataclass(frozen=True)
class TableCell:
    """One cell of a table.

    Args:
        text: What it says.
        value: What the column sorts by; an empty text sorts last.
        style: A class of the stylesheet: "best", "text".
        spread: The half-width of the interval, written after ±.
        minor: Lines in small print below.
        off: A line in small print that is marked as too far from what was expected.
        badge: A label below the text.
    """

    text: str
    value: str = ""
    style: str = ""
    spread: str = ""
    minor: Sequence[str] = ()
    off: str = ""
    badge: str = ""


@dataclass(frozen=True)
class Table:
    """A table that sorts by a click on a column's head; the first column names the rows. Without heads, no sorting."""

    name: str  # what a screen reader says
    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[TableCell]]


@dataclass(frozen=True)
class Drawing:
    """An SVG with a title, a caption, and a description for those who cannot see it."""

    slug: str  # starts every id of the drawing
    svg: str  # as ``report.figures.canvas.svg`` gives it: its texts are escaped
    title: str
    caption: str
    description: str

    @property
    def svg_attributes(self) -> str:
        return self.svg.removeprefix("<svg").partition(">")[0]

    @property
    def svg_content(self) -> str:
        return self.svg.partition(">")[2]


@dataclass(frozen=True)
class Explorer:
    """A drill-down that the script of the page makes from its data."""

    name: str  # what a screen reader says
    data: Mapping[str, Any]  # plain values, as ``templates/explorer.js`` reads them

    @property
    def attribute(self) -> str:
        """The data as the page's tag holds it."""
        return attribute(self.data)


@dataclass(frozen=True)
class CodeBlock:
    """Settings as text, under a heading where one begins."""

    heading: str
    text: str
    code: str


@dataclass(frozen=True)
class Section:
    """A part of a page, in this order: a sentence, tables, drawings, a drill-down, code, and folded parts.

    One with an ``anchor`` is the heading of a study, which a link leads to.
    """

    heading: str
    text: str = ""
    is_finding: bool = False  # the sentence is set large
    tables: Sequence[Table] = ()
    drawings: Sequence[Drawing] = ()
    code: Sequence[CodeBlock] = ()
    folds: Sequence[Section] = ()
    anchor: str = ""
    explorer: Explorer | None = None


@dataclass(frozen=True)
class Headline:
    """A finding at the top of the page, with the facts and the warnings that belong to it."""

    text: str
    command: str = ""  # what to run, below the text
    also: Sequence[str] = ()  # further findings, set smaller; an empty one is left out
    lead: str = ""  # which study it is about, where there are several
    anchor: str = ""
    facts: str = ""
    notes: Sequence[str] = ()


def attribute(data: Mapping[str, Any]) -> str:
    """Plain values as JSON that stands between single quotes in a tag: double quotes, of which it is full, stay."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return html.escape(text, quote=False).replace("'", "&#39;")


def render_page(
    title: str,
    headlines: Sequence[Headline],
    sections: Sequence[Section],
    *,
    glossary: Mapping[str, str],
    footer: str,
    details: Section | None = None,
) -> str:
    """The whole file as text; the same arguments give the same bytes."""
    script = "".join(map(_asset, SCRIPTS))
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=title,
            headlines=headlines,
            sections=sections,
            glossary=glossary,
            details=details,
            footer=footer,
            style=_asset("style.css"),
            script=script,
            digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader("bayesneg.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def _asset(name: str) -> str:
    return (files("bayesneg.report") / "templates" / name).read_text(encoding="utf-8")


def free_path(path: Path) -> Path:
    """The path where it is free, otherwise the first that is: ``report.html``, ``report-2.html``, …"""
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_stem(f"{path.stem}-{number}")
    return free


def write_page(text: str, path: str | Path) -> Path:
    """Write the file in one step, so that a reader never sees half of it. Returns the path."""
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file in it, such as {target / 'report.html'}")
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, text)
    return target
