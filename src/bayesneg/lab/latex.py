"""Studies as LaTeX tables, from the cells of the Markdown ones."""

from __future__ import annotations

from collections.abc import Iterable

from bayesneg.lab.markdown import MARK, about, legend, short, three_lines
from bayesneg.lab.published import METRICS
from bayesneg.lab.studies import Study

_TEX = {
    "±": r"$\pm$",
    "−": "$-$",
    MARK: r"$\times$",
    "–": "--",
    "λ": r"$\lambda$",
    "%": r"\%",
    "_": r"\_",
    "&": r"\&",
    "#": r"\#",
}


def latex(title: str, studies: Iterable[Study]) -> str:
    """Tables for booktabs, each fit to the page's width."""
    return "\n".join([f"% {title}; needs booktabs and graphicx", *(_tabular(study) for study in studies)])


def _tabular(study: Study) -> str:
    head = " & ".join(["Sampler", "", *(_tex(short(key)) for key in METRICS)])
    body = [" & ".join(_tex_cell(cell) for cell in row) + r" \\" for line in study.lines for row in three_lines(line)]
    return "\n".join(
        [
            r"\begin{table*}",
            r"  \centering",
            rf"  \caption{{{_tex(study.name)}. {_tex(about(study))} {_tex(legend())}}}",
            r"  \resizebox{\textwidth}{!}{%",
            rf"  \begin{{tabular}}{{ll{'r' * len(METRICS)}}}",
            r"    \toprule",
            rf"    {head} \\",
            r"    \midrule",
            *(f"    {row}" for row in body),
            r"    \bottomrule",
            r"  \end{tabular}}",
            r"\end{table*}",
            "",
        ]
    )


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)


def _tex_cell(cell: str) -> str:
    """Markdown's bold as LaTeX's."""
    before, bold, rest = cell.partition("**")
    if not bold:
        return _tex(cell)
    inside, _, after = rest.partition("**")
    return rf"{_tex(before)}\textbf{{{_tex(inside)}}}{_tex(after)}"
