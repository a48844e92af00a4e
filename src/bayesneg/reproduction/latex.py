"""Studies as LaTeX tables, from the cells of the Markdown ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bayesneg.report.names import number, signed
from bayesneg.reproduction.markdown import MARK, about, chance, legend, short, three_lines
from bayesneg.reproduction.pairwise import PairwiseTest, pairwise_tests
from bayesneg.reproduction.published import METRICS
from bayesneg.reproduction.studies import Study

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


def latex(title: str, studies: Iterable[Study]) -> str:
    """Tables for booktabs, each fit to the page's width: what was measured, then the paired tests."""
    head = f"% {' '.join(title.split())}; needs booktabs and graphicx"
    return "\n".join([head, *(text for study in studies for text in (_measured(study), *_tested(study)))])


def _measured(study: Study) -> str:
    caption = f"{study.name}. {about(study)} {legend()}"
    head = ["Sampler", "", *map(short, METRICS)]
    several = len(study.seeds) > 1
    rows = [row for line in study.lines for row in three_lines(line, count=several)]
    return _table(caption, f"ll{'r' * len(METRICS)}", head, rows)


def _tested(study: Study) -> list[str]:
    """Nothing where no two samplers can be compared."""
    caption = f"{study.name}. Paired tests, Holm-corrected within this table."
    head = ["NDCG@20", "Difference", "95% interval over users", "p, users", "p, seeds", "Seeds", "Verdict"]
    rows = [_test(pair) for pair in pairwise_tests(study)]
    return [_table(caption, "lrrrrrl", head, rows)] if rows else []


def _test(pair: PairwiseTest) -> list[str]:
    over = pair.difference.over_users
    interval = f"{number(over.low, 4)} to {number(over.high, 4)}"
    chances = [chance(pair.difference.over_users.p_value), chance(pair.difference.over_seeds.p_value)]
    return [
        f"{pair.one} − {pair.other}",
        signed(over.mean, 4),
        interval,
        *chances,
        str(pair.difference.n_seeds),
        pair.verdict,
    ]


def _table(caption: str, columns: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
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
            *(rf"    {' & '.join(map(_tex_cell, row))} \\" for row in rows),
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
