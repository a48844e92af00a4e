"""Reading a page back: strict about nesting, so that a report is known to be well formed."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "br", "col", "link", "input", "img"}


class Page(HTMLParser):
    """Tags, ids, links and the tables of a page; nesting is checked while parsing."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []  # (innermost tag, text)
        self.tables: list[list[list[str]]] = []
        self.feed(text)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {key: value or "" for key, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> inside <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data + " "

    @property
    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.tags if "id" in attributes]

    @property
    def visible(self) -> str:
        return " ".join(text for tag, text in self.texts if tag not in ("style", "script"))

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)
