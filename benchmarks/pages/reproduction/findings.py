"""What a figure shows beside what the paper says of it, in a sentence made of its runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Final

from bayesneg.evaluation.score_densities import DENSITIES
from bayesneg.reproduction.published import MAIN
from bayesneg.reproduction.studies import Line, PaperStudy

_ORDINALS: Final = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
AT_BEST: Final = {"λ": ("5",), "m": ("5", "10")}  # where the paper sees the highest NDCG@20


def score_densities(study: PaperStudy) -> str:
    """Figure 1: whether false negatives score higher."""
    seen = [line for line in study.runs[0].epochs if DENSITIES in line]
    if not seen:
        return ""
    shares = ", ".join(f"{line[DENSITIES]['share']:.0%} (epoch {line['epoch']})" for line in seen)
    how = "reproduces" if seen[-1][DENSITIES]["share"] > 0.5 else "does not reproduce"
    return (
        f"How often a random false negative scores above a random true one: {shares}. The paper sees false negatives "
        f"higher as training goes on; that {how}."
    )


def sampling_quality(study: PaperStudy) -> str:
    """Figure 4: who samples the fewest false negatives, and the most informative ones."""
    sentences = []
    for key, name in (("tnr", "TNR"), ("inf", "INF")):
        ends = {line.label: fmean(run.epochs[-1][key] for run in line.runs) for line in study.lines}
        order = sorted(ends, key=lambda label: -ends[label])
        listed = ", ".join(f"{label} {ends[label]:.4f}" for label in order)
        sentences.append(f"{name} at the last epoch, highest first: {listed}.")
        if "BNS" in ends:
            how = (
                "reproduces" if order[0] == "BNS" else f"does not reproduce: BNS ranks {_ORDINALS[order.index('BNS')]}"
            )
            sentences.append(
                f"The paper names BNS as the best{' after enough epochs' if key == 'inf' else ''}; that {how}."
            )
    return " ".join(sentences)


def sensitivity(study: PaperStudy) -> str:
    """Figure 5: where NDCG@20 is highest over λ, and over m."""
    by_name: dict[str, list[Line]] = {}
    for line in study.lines:
        by_name.setdefault(line.label.partition(" = ")[0], []).append(line)
    sentences = []
    for name, lines in by_name.items():
        best = max(lines, key=lambda line: line.values[MAIN].here.mean)
        values = ", ".join(f"{line.label.partition(' = ')[2]}: {line.values[MAIN].here.mean:.4f}" for line in lines)
        said = AT_BEST.get(name, ())
        how = "reproduces" if best.label.partition(" = ")[2] in said else "does not reproduce"
        sentences.append(
            f"NDCG@20 over {name}: {values}. The paper sees the highest at {' or '.join(said)}; that {how}."
        )
    return " ".join(sentences)


OF_FIGURES: Final[Mapping[str, Callable[[PaperStudy], str]]] = {
    "fig1": score_densities,
    "fig4": sampling_quality,
    "fig5": sensitivity,
}
OF_THEORY: Final = "Drawn from the formulas alone; the theory below says how they were checked."
