"""HTML as values: text is escaped unless it is already markup."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

_VOID = ("meta", "br", "col")


class Markup(str):
    """A piece of HTML. Everything else that enters a page is text, and is escaped."""

    __slots__ = ()


def element(name: str, attributes: Mapping[str, str], *children: str) -> Markup:
    """``<name attributes>children</name>``.

    >>> element("td", {"class": "n"}, "a < b", element("b", {}, "c"))
    '<td class="n">a &lt; b<b>c</b></td>'
    """
    written = "".join(f' {key}="{escape(value)}"' for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: str) -> Markup:
    """The children one after the other."""
    return Markup("".join(child if isinstance(child, Markup) else escape(child) for child in children))


def section(heading: str, *parts: Markup) -> Markup:
    return element("section", {}, element("h2", {}, heading), *parts)


def fold(summary: str, *parts: Markup) -> Markup:
    """Parts that open on a click or a key."""
    return element("details", {}, element("summary", {}, summary), *parts)


def grid(*figures: Markup) -> Markup:
    """Figures side by side, as many as fit."""
    return element("div", {"class": "figures"}, *figures)
