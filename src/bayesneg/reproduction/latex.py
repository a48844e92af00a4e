"""Studies as LaTeX tables, with the cells of the Markdown ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bayesneg.reproduction.markdown import MARK, TESTS_HEAD, about, legend, pairwise_cells, results_rows
from bayesneg.reproduction.pairwise import correction_family, pairwise_tests
from bayesneg.reproduction.published import METRICS
from bayesneg.reproduction.studies import PaperStudy

_MATH = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "θ": "theta",
    "λ": "lambda",
    "μ": "mu",
    "σ": "sigma",
    "τ": "tau",
    "±": "pm",
    "·": "cdot",
    "√": "surd",
    "≤": "leq",
    "≥": "geq",
    "→": "rightarrow",
    MARK: "times",
}
_TEX = {
    **{letter: rf"$\{name}$" for letter, name in _MATH.items()},
    **{letter: rf"\{letter}" for letter in "%_&#${}"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "−": "$-$",
    "–": "--",
    "…": r"\ldots{}",
    "\n": " ",
}


def latex(title: str, studies: Iterable[PaperStudy]) -> str:
    """Tables for booktabs, each scaled to the page's width: the results, then the pairwise tests of each study."""
    parts = [f"% {' '.join(title.split())}; needs booktabs and graphicx"]
    for study in studies:
        caption = f"{study.name}. {about(study)} {legend()}"
        parts.append(_table(caption, f"ll{'r' * len(METRICS)}", results_rows(study)))
        if tests := [pairwise_cells(pair) for pair in pairwise_tests(study)]:
            caption = f"{study.name}. Paired tests, Holm-corrected within {correction_family(study)}."
            parts.append(_table(caption, "lrrrrrl", [TESTS_HEAD, *tests]))
    return "\n".join(parts)


def _table(caption: str, columns: str, rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    return "\n".join(
        [
            r"\begin{table*}",
            r"  \centering",
            rf"  \caption{{{_tex(caption)}}}",
            r"  \resizebox{\textwidth}{!}{%",
            rf"  \begin{{tabular}}{{{columns}}}",
            r"    \toprule",
            rf"    {' & '.join(map(_tex, head))} \\",
            r"    \midrule",
            *(rf"    {' & '.join(map(_tex_cell, row))} \\" for row in body),
            r"    \bottomrule",
            r"  \end{tabular}}",
            r"\end{table*}",
            "",
        ]
    )


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)


def _tex_cell(cell: str) -> str:
    """Markdown's bold becomes LaTeX's."""
    before, bold, rest = cell.partition("**")
    if not bold:
        return _tex(cell)
    inside, _, after = rest.partition("**")
    return rf"{_tex(before)}\textbf{{{_tex(inside)}}}{_tex(after)}"
