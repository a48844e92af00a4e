"""Small HTML tables, which notebooks show in place of a ``repr``.

Colours are those of the notebook, light or dark; there is no script and no style sheet, which notebooks take out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from typing import Final

MOST_ROWS: Final = 40
LINE: Final = "1px solid rgba(128,128,128,.45)"
CELL: Final = "padding:2px 10px 2px 0;vertical-align:top;background:transparent;"
TEXT: Final = f"{CELL}text-align:left;max-width:32em;overflow-wrap:anywhere;white-space:normal"
NUMBER: Final = f"{CELL}text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"
PROSE: Final = "max-width:60em;overflow-wrap:anywhere"
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def html_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    above: Sequence[str] = (),
    notes: Sequence[str] = (),
    n_text: int = 1,
) -> str:
    """A table as HTML, with everything in it as text.

    Args:
        title: The caption.
        columns: Heads of the columns.
        rows: Cells; at most 40 rows are shown.
        above: Lines above the table.
        notes: Lines below the table.
        n_text: How many of the first columns are text; the others are numbers.

    Returns:
        One element with inline styles only.

    >>> "&lt;b&gt;" in html_table("two", ("", "n"), [("<b>", "1")])
    True
    """
    styles = [TEXT if place < n_text else NUMBER for place in range(len(columns))]
    heads = _cells("th", columns, styles, f";font-weight:600;border-bottom:{LINE}")
    body = "".join(f'<tr style="background:transparent">{_cells("td", row, styles)}</tr>' for row in rows[:MOST_ROWS])
    left = [f"… and {len(rows) - MOST_ROWS:,} more rows"] if len(rows) > MOST_ROWS else []
    lead = "".join(f'<div style="{PROSE};margin:0 0 4px">{_text(line)}</div>' for line in above)
    below = "".join(f'<div style="{PROSE};margin:4px 0 0;opacity:.8">{_text(note)}</div>' for note in (*left, *notes))
    caption = "caption-side:top;text-align:left;padding:2px 0;font-weight:600;color:inherit;overflow-wrap:anywhere"
    return (
        f'<div style="overflow-x:auto;max-width:100%;line-height:1.4;color:inherit">{lead}'
        '<table style="border-collapse:collapse;margin:0;border:none;background:transparent;color:inherit">'
        f'<caption style="{caption}">{_text(title)}</caption>'
        f'<thead><tr style="background:transparent">{heads}</tr></thead><tbody>{body}</tbody></table>{below}</div>'
    )


def with_half_width(mean: float | None, half_width: float = math.nan, *, percent: bool = False) -> str:
    """``0.4123 ± 0.0051``; – where nothing was measured."""
    if mean is None or not math.isfinite(mean):
        return "–"
    digits = 2 if percent else 4 if abs(mean) < 10 else 1
    scale, unit = (100, "%") if percent else (1, "")
    shown = (f"{scale * value:.{digits}f}{unit}" for value in (mean, half_width) if math.isfinite(value))
    return " ± ".join(shown)


def _cells(tag: str, texts: Sequence[str], styles: Sequence[str], more: str = "") -> str:
    pairs = zip(texts, styles, strict=True)
    return "".join(f'<{tag} style="{style}{more}">{_text(text)}</{tag}>' for text, style in pairs)


def _text(value: object) -> str:
    return escape(CONTROL.sub(" ", str(value)))
