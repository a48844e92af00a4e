"""docs/speed.md and its plots, from the result files alone.

A section is written for every result file that exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.machine import read_result
from benchmarks.pages.publish import keep

HERE: Final = Path(__file__).parent.parent
DOCS: Final = HERE.parent / "docs"
PAGE: Final = DOCS / "speed.md"
PLOTS: Final = DOCS / "speed"
NAMES: Final = {"ml-100k": "MovieLens-100K", "ml-1m": "MovieLens-1M", "100k-items": "generated, 100,000 items"}
STYLES: Final = {
    "RNS": ("#555555", "o", ":"),
    "DNS": ("#b3560b", "s", "--"),
    "BNS, refreshed F": ("#1b6ca8", "^", "-"),
    "BNS, exact F": ("#7a1f6b", "D", "-."),
}
Result = dict[str, Any]


def publish(*, check: bool) -> None:
    if not check:
        draw_plots()
    keep(PAGE, page(), check=check)


def page() -> str:
    parts = [
        "# Speed",
        "This page is written by `python -m benchmarks.pages` from the files in `benchmarks/results/`; `make "
        "bench` "
        "makes those anew. Each section names its script. Times depend on the machine and on what else it does; ratios "
        "are of medians of one run, in which every contender has its turn in every repeat. One core and d = 32 unless "
        "said. Where a goal was set before anything was measured, it is given, reached or not.",
    ]
    for name, section in SECTIONS.items():
        found = read_result(name)
        if found is not None:
            said = [found["note"]] if "note" in found else []  # what a reader must know of how the file came about
            parts += [*section(found), *said, f"`benchmarks/{name}.py`, {_machine(found['machine'])}"]
    return "\n\n".join(parts) + "\n"


# ---------------------------------------------------------------------------------------------------------- sections


def refreshed(result: Result) -> list[str]:
    rows = []
    for world, found in result["worlds"].items():
        seconds, ratios = found["seconds_per_epoch"], found["ratios"]
        goal_dns, goal_rns = (2.0, None) if world == "100k-items" else (1.5, 4.0)
        agreement = found["agreement"]["BNS, refreshed"]
        rows.append(
            [
                NAMES[world],
                *(_ms(seconds[label]) if label in seconds else "" for label in COST),
                _against(ratios["mean, BNS refreshed / DNS"], goal_dns),
                _against(ratios["mean, BNS refreshed / RNS"], goal_rns),
                f"{100 * sum(agreement) / len(agreement):.1f}%",
                f"{100 * min(agreement):.1f}%",
            ]
        )
    return [
        "## What BNS costs beside DNS and RNS",
        "An epoch with everything that belongs to it: draws, choices, steps and the making of summaries. "
        "Milliseconds are "
        "medians over epochs from the first on, ratios are of whole times, so that early epochs, in which vectors turn "
        "fast and summaries are made often, count as they should. `cdf=\"refreshed\"` reads F off a summary of the "
        "user's list ([how](equations.md)). Agreement is how many of its choices are those of exact F at the same "
        "vectors with the same draws, in the mean over the epochs that were looked at and in the worst of them; the "
        "goal was 97%.",
        _table(
            ["data", "RNS, ms", "DNS, ms", "BNS refreshed, ms", "BNS exact, ms", "refreshed / DNS", "refreshed / RNS",
             "same choice", "in the worst epoch"],
            rows,
        ),
        "Where the milliseconds of an epoch go, medians. What BNS does beyond DNS is making summaries and, for each "
        "example, one score more, the length of the user's vector, a look-up and an exponential:",
        _table(["data", "sampler", "draws and priors", "summaries", "choices and steps"], [
            [NAMES[world], label, *(_ms(value) for value in spent.values())]
            for world, found in result["worlds"].items() for label, spent in found.get("parts", {}).items()
        ]),
        f"Were summaries free, the ratio to DNS would be {_without_summaries(result)}.",
    ]  # fmt: skip


def _without_summaries(result: Result) -> str:
    """Refreshed BNS over DNS with the summaries left out of its time, world by world."""
    found = []
    for world, own in result["worlds"].items():
        if "BNS, refreshed" in own.get("parts", {}):
            ours, theirs = own["parts"]["BNS, refreshed"], own["parts"]["DNS"]
            spent = sum(value for name, value in ours.items() if name != "summaries")
            found.append(f"{spent / sum(theirs.values()):.2f} ({NAMES[world]})")
    return ", ".join(found)


COST: Final = ("RNS", "DNS", "BNS, refreshed", "BNS, exact")


def refreshed_quality(result: Result) -> list[str]:
    rows = [
        [label, f"{found['mean']:.4f}", f"{found['interval'][0]:.4f} to {found['interval'][1]:.4f}"]
        for label, found in result["samplers"].items()
    ]
    gaps = [
        [label, _signed(found["mean"]), f"{_signed(found['low'])} to {_signed(found['high'])}", str(found["n"])]
        for label, found in result["differences"].items()
    ]
    return [
        "## What a refreshed F costs in quality",
        "NDCG@20 of MF on the paper's split of MovieLens-100K, epoch 100; intervals of 95% over seeds, differences "
        "paired "
        "by seed. The goal was not to lose more than 0.002 against exact F, and to stay clearly above DNS.",
        _table(["sampler", "NDCG@20", "interval"], rows),
        _table(["difference", "mean", "interval", "seeds"], gaps),
    ]


def peers(result: Result) -> list[str]:
    rows = [
        [NAMES[data], *(_ms(found["seconds_per_epoch"][label]) for label in ("RNS", "implicit", "Cornac")),
         *(_against(found["ratios"][f"RNS / {peer}"], 1.0) for peer in ("implicit", "Cornac"))]
        for data, found in result.items() if data in NAMES
    ]  # fmt: skip
    versions = ", ".join(f"{name} {version}" for name, version in result["peers"].items())
    return [
        "## Random negatives against other libraries",
        f"An epoch of BPR with random negatives, the same dimension, one thread ({versions}).",
        _table(["data", "ours, ms", "implicit, ms", "Cornac, ms", "ours / implicit", "ours / Cornac"], rows),
    ]


def plain(result: Result) -> list[str]:
    ratio = result["ratios"]
    return [
        "## Exact BNS against the plain loop",
        "MovieLens-100K: the paper's algorithm as a plain NumPy loop over examples, against the compiled kernel "
        "with exact "
        "F, as the mean over a training of 100 epochs.",
        _table(
            ["what", "times faster"],
            [
                ["candidate by candidate, as published; goal 100",
                 _over(ratio["plain NumPy, candidate by candidate / exact BNS"], 100.0)],
                ["the same in the first epochs alone, where little can be proved early",
                 f"{ratio['plain NumPy, candidate by candidate / exact BNS, first epochs']:.0f}"],
                ["candidates at once", f"{ratio['plain NumPy, candidates at once / exact BNS']:.0f}"],
            ],
        ),
    ]  # fmt: skip


def scaling(result: Result) -> list[str]:
    parts = ["## How the time grows"]
    heads = {"items": "items of the catalogue", "candidates": "candidates m", "dimension": "dimension d"}
    texts = {
        "items": "Generated worlds of 5,000 users and 100,000 interactions, milliseconds per epoch. Exact F looks "
        "at more "
        "and more items; a refreshed one at its pool.",
        "candidates": "MovieLens-100K, milliseconds per epoch.",
        "dimension": "MovieLens-100K, five candidates, milliseconds per epoch.",
    }
    for what, points in result.items():
        if what not in heads:
            continue
        rows = [[f"{int(x):,}", *(_ms(found[label]) for label in STYLES)] for x, found in points.items()]
        parts += [texts[what], f"![Time of an epoch against the {heads[what]}](speed/{what}.svg)"]
        parts.append(_table([heads[what], *STYLES], rows))
    return parts


def quality_time(result: Result) -> list[str]:
    rows = []
    for label, curves in result["curves"].items():
        seconds = float(np.mean([curve["seconds"][-1] for curve in curves]))
        rows.append([label, f"{seconds:.2f}", f"{np.mean([curve['ndcg@20'][-1] for curve in curves]):.4f}"])
    return [
        "## Quality against time",
        f"MovieLens-100K, {result['epochs']} epochs, mean of {len(curves)} seeds; every {result['every']}th epoch is a "
        "point. What is judged is the test part, so a best epoch must not be read off as a result.",
        "![NDCG@20 against seconds of training](speed/quality.svg)",
        _table(["sampler", f"seconds of {result['epochs']} epochs", "NDCG@20 at the end"], rows),
    ]


def million(result: Result) -> list[str]:
    rows = [
        [str(line["epoch"]), f"{line['seconds']:.0f}", f"{line['peak_gibibytes']:.1f}"] for line in result["epochs"]
    ]
    lines = result["epochs"]
    errors = [
        [f"{int(rank):,}", *(_times(line[key][rank]["median"]) for line in lines for key in AGES),
         *(_times(lines[-1][key][rank]["90%"]) for key in AGES)]
        for rank in lines[0]["tail_error"]
    ]  # fmt: skip
    heads = [f"epoch {line['epoch']}, {age}" for line in lines for age in AGES.values()]
    settings = result["settings"]
    return [
        "## A million users and a million items",
        f"{settings['users']:,} users, {settings['items']:,} items, {settings['interactions']:,} interactions, "
        f"{settings['threads']} threads, BNS with a refreshed F. The goal was an epoch within ten minutes and 12 GB.",
        _table(["epoch", "seconds", "peak memory, GiB"], rows),
        "By how many times the rank that a summary gives to an item is off, upwards or downwards, from the rank at "
        "which "
        "the item really stands; medians over 200 users after each epoch, of summaries as the epoch left them and "
        "freshly "
        "made; at the end what nine users in ten stay within, after the last epoch. Vectors still turn fast in "
        "these first "
        "epochs, so that what a summary said at a user's last visit is soon no longer so.",
        _table(["rank", *heads, "last, 90%, as left", "last, 90%, fresh"], errors),
    ]


AGES: Final = {"tail_error": "as left", "tail_error_fresh": "fresh"}


LOOKED_AT: Final = "bare product and a look at each score"
LOOKED_UP: Final = "the same and a look-up for each score"


def evaluation(result: Result) -> list[str]:
    rows = []
    for case in result["cases"]:
        ratio = case["ratio to the bare product"]
        rows.append(
            [f"{NAMES.get(case['data'], case['data'])}, d = {case['dim']}", _ms(case["seconds"]["bare product"]),
             _ms(case["seconds"]["evaluation, all metrics"]), f"{ratio['evaluation, all metrics']:.2f}",
             *(f"{ratio[what]:.2f}" for what in ("evaluation without AUC", LOOKED_AT, LOOKED_UP))]
        )  # fmt: skip
    reached = "reached" if result["reached"] else "**not reached**"
    return [
        "## Evaluation over the full catalogue",
        f"All metrics at 5, 10 and 20 against the bare product of the vectors. The goal, on MovieLens-1M at d = 32, "
        "was "
        f"{result['goal']:g} times its time: {result['ratio']:.2f}, {reached}. Without the AUC, which needs the "
        "rank of every test item and not only the top, less is left to do. The last two columns are what the ratio is "
        "to be seen against: the product with one look at each score, and with one look-up in a small table for each, "
        "which is about what placing every score among a user's test items takes. The shorter the vectors, the less a "
        "product costs "
        "beside what must be done with each of its scores.",
        _table(
            [
                "data",
                "bare product, ms",
                "all metrics, ms",
                "ratio",
                "ratio without AUC",
                "product and a look",
                "product and a look-up",
            ],
            rows,
        ),
        f"With {result['memory']['n_items']:,} items the memory in use rises by "
        f"{result['memory']['rise of the peak in bytes'] / 2**20:.0f} MiB.",
    ]


def reading(result: Result) -> list[str]:
    median = result["median"]
    return [
        "## Reading",
        f"{result['rows']:,} lines of CSV ({result['file, MiB']:,.0f} MiB) into `Interactions`, on two cores: "
        f"{median['seconds']:.1f} s and {median['peak resident, GiB']:.2f} GiB at the peak (goal: 15 s and 3 GB).",
    ]


def threads(result: Result) -> list[str]:
    rows = []
    for label, found in result.items():
        if label == "machine":
            continue
        gap = found["difference"]
        low, high = gap["interval"]
        rows.append(
            [label, *(_ms(found["seconds_per_epoch"][n]) for n in ("1", "2")), f"{found['2 threads / 1']:.2f}",
             f"{_signed(gap['mean'])} ({_signed(low)} to {_signed(high)})", str(len(found["ndcg@20"]["1"]))]
        )  # fmt: skip
    return [
        "## A second thread",
        "`MF(threads=2)` lets two threads write over each other's steps. NDCG@20 on MovieLens-100K, epoch 100, "
        "difference "
        "paired by seed with its 95% interval.",
        _table(["sampler", "1 thread, ms", "2 threads, ms", "ratio", "NDCG@20, 2 threads − 1", "seeds"], rows),
    ]


def ceilings(result: Result) -> list[str]:
    units = {"vectors": "vectors in random order", "numbers": "numbers in a row", "products": "multiply-adds"}
    parts = [
        "## What limits each kernel",
        "Each kernel beside what the machine needs for the same vectors read in random order and multiplied, the same "
        "numbers read one after another, or the same matrix product; the slowest of the three is the floor. That of "
        "exact F leaves out the sweep of the catalogue, whose length depends on the scores; draws are hashing and "
        "looking up "
        "bits, for which there is no ceiling here.",
    ]
    for data, found in result.items():
        if data not in NAMES:
            continue
        per = found["seconds per"]
        rows = [
            [label, _ms(kernel["seconds"]), _ms(kernel["floor"]), units[kernel["limit"]],
             f"{kernel['times the floor']:.1f}"]
            for label, kernel in found["kernels"].items()
        ]  # fmt: skip
        parts += [
            f"{NAMES[data]}: a vector takes {per['vectors'] * 1e9:.1f} ns, numbers come at "
            f"{4 / per['numbers'] / 1e9:.1f} GB/s, products at {2 / per['products'] / 1e9:.0f} GFLOP/s.",
            _table(["kernel", "ms", "floor, ms", "the floor is", "times the floor"], rows),
        ]
    return parts


SECTIONS: Final[dict[str, Callable[[Result], list[str]]]] = {
    "speed/bench_cdf": refreshed,
    "quality/score_cdf": refreshed_quality,
    "quality/over_time": quality_time,
    "speed/bench_peers": peers,
    "speed/bench_epoch": plain,
    "speed/bench_scaling": scaling,
    "speed/bench_million": million,
    "speed/bench_evaluation": evaluation,
    "speed/bench_reading": reading,
    "speed/bench_threads": threads,
    "speed/bench_ceilings": ceilings,
}


# ------------------------------------------------------------------------------------------------------------- plots


def draw_plots() -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update(
        {"svg.hashsalt": "bayesneg", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    )
    PLOTS.mkdir(exist_ok=True)
    found = read_result("speed/bench_scaling")
    if found is not None:
        for what, label in (("items", "items"), ("candidates", "candidates"), ("dimension", "dimension")):
            curves = {
                name: ([int(x) for x in found[what]], [1000 * point[name] for point in found[what].values()])
                for name in STYLES
            }
            _draw(PLOTS / f"{what}.svg", curves, label, "milliseconds per epoch", both_log=True)
    found = read_result("quality/over_time")
    if found is not None:
        curves = {
            name: tuple(np.mean([own[key] for own in found["curves"][name]], axis=0) for key in ("seconds", "ndcg@20"))
            for name in STYLES
        }
        _draw(PLOTS / "quality.svg", curves, "seconds of training", "NDCG@20", both_log=False)


def _draw(path: Path, curves: dict[str, Any], x_label: str, y_label: str, *, both_log: bool) -> None:
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    for name, (x, y) in curves.items():
        colour, marker, line = STYLES[name]
        axes.plot(x, y, color=colour, marker=marker, linestyle=line, markersize=4, label=name)
    axes.set_xscale("log")
    if both_log:
        axes.set_yscale("log")
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


# ------------------------------------------------------------------------------------------------------------- cells


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.1f}"


def _against(ratio: float, goal: float | None) -> str:
    if goal is None:
        return f"{ratio:.2f}"
    return f"{ratio:.2f} (goal {goal:g}: {'reached' if ratio <= goal else '**not reached**'})"


def _over(ratio: float, goal: float) -> str:
    return f"{ratio:.0f} ({'reached' if ratio >= goal else '**not reached**'})"


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else '−' if value < 0 else ''}{abs(value):.4f}"


def _times(log: float) -> str:
    return f"{np.exp(log):,.2f}"


def _machine(machine: Result) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return f"{machine['processor']}, {machine['cores']} cores, {machine['system']}; {versions}."


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))
