"""docs/explanation/speed.md and its plots, from the files in results/speed and results/quality; a section for each that exists."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks.machine import BENCHMARKS, read_result
from benchmarks.pages.publish import DOCS, keep, keep_pictures
from benchmarks.pages.speed import lightgcn, plots, serving, weighted
from benchmarks.pages.speed.weighted import against
from benchmarks.pages.text import MADE, folded, milliseconds, signed, table, versions_of
from benchmarks.pages.text import page as joined

if TYPE_CHECKING:
    pass

NAMES: Final = {"ml-100k": "MovieLens-100K", "ml-1m": "MovieLens-1M", "100k-items": "generated, 100,000 items"}
Result = dict[str, Any]


def publish(*, check: bool) -> None:
    keep_pictures(DOCS / "images" / "speed", plots.draw, check=check)
    keep(DOCS / "speed.md", page(), check=check)


def page() -> str:
    parts = [
        "# Speed",
        "Ratios are of medians of one run, in which every contender has its turn in every repeat. One core and d = 32 "
        "unless stated. Goals were set before anything was measured. `make bench` runs everything again. " + MADE,
    ]
    for name, section in SECTIONS.items():
        if (found := read_result(name)) is not None:
            note = [found["note"]] if "note" in found else []
            parts += [*section(found), *note, f"`python -m {module_of(name)}`: {versions_of(found['machine'])}"]
    return joined(*parts, *lightgcn.sections())


def module_of(result: str) -> str:
    """The module that wrote a result; it may be in a folder of its room, and measure on one of several devices."""
    room, script = result.removesuffix("_cpu").removesuffix("_cuda").split("/")
    path = next((BENCHMARKS / room).rglob(f"{script}.py"))
    return ".".join(path.relative_to(BENCHMARKS.parent).with_suffix("").parts)


def refreshed(result: Result) -> list[str]:
    rows = []
    for world, found in result["worlds"].items():
        seconds, ratios = found["seconds_per_epoch"], found["ratios"]
        goal_dns, goal_rns = (2.0, None) if world == "100k-items" else (1.5, 4.0)
        agreement = found["agreement"]["BNS, refreshed"]
        rows.append(
            [
                NAMES[world],
                *(milliseconds(seconds[label]) if label in seconds else "" for label in COST),
                against(ratios["mean, BNS refreshed / DNS"], goal_dns),
                against(ratios["mean, BNS refreshed / RNS"], goal_rns),
                f"{100 * sum(agreement) / len(agreement):.1f}%",
                f"{100 * min(agreement):.1f}%",
            ]
        )
    return [
        "## BNS against DNS and RNS",
        "A whole epoch: draws, choices, steps and summaries of the score CDF. Milliseconds are medians over epochs, ratios "
        'are of total times. `cdf="refreshed"` reads F off a summary of the user\'s scores ([how](equations.md)). '
        "Agreement is the share of its choices that exact F makes too, mean and minimum over epochs (goal 97%).",
        table(
            ["data", "RNS, ms", "DNS, ms", "BNS refreshed, ms", "BNS exact, ms", "refreshed / DNS", "refreshed / RNS",
             "agreement", "minimum"],
            rows,
        ),
        folded(
            "Where the time goes",
            table(["data", "sampler", "draws and priors", "summaries", "choices and steps"], [
                [NAMES[world], label, *(milliseconds(value) for value in spent.values())]
                for world, found in result["worlds"].items() for label, spent in found.get("parts", {}).items()
            ]),
            f"Without the time of summaries the ratio to DNS would be {_without_summaries(result)}.",
        ),
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
        [label, signed(found["mean"]), f"{signed(found['low'])} to {signed(found['high'])}", str(found["n"])]
        for label, found in result["differences"].items()
    ]
    return [
        "## Quality with a refreshed F",
        "NDCG@20 of MF on the authors' split of MovieLens-100K, epoch 100; 95% intervals over seeds, differences paired "
        "by seed. Goal: at most 0.002 below exact F, and clearly above DNS.",
        table(["sampler", "NDCG@20", "interval"], rows),
        table(["difference", "mean", "interval", "seeds"], gaps),
    ]


def peers(result: Result) -> list[str]:
    rows = [
        [NAMES[data], *(milliseconds(found["seconds_per_epoch"][label]) for label in ("RNS", "implicit", "Cornac")),
         *(against(found["ratios"][f"RNS / {peer}"], 1.0) for peer in ("implicit", "Cornac"))]
        for data, found in result.items() if data in NAMES
    ]  # fmt: skip
    versions = ", ".join(f"{name} {version}" for name, version in result["peers"].items())
    return [
        "## Random negatives against other libraries",
        f"An epoch of BPR with random negatives, the same dimension, one thread ({versions}).",
        table(["data", "ours, ms", "implicit, ms", "Cornac, ms", "ours / implicit", "ours / Cornac"], rows),
    ]


def plain(result: Result) -> list[str]:
    ratio = result["ratios"]
    return [
        "## Exact BNS against the plain loop",
        "MovieLens-100K: the paper's algorithm as a NumPy loop over examples, against the compiled kernel with exact F "
        "(mean over 100 epochs).",
        table(
            ["what", "times faster"],
            [
                ["candidate by candidate, as published; goal 100",
                 _over(ratio["plain NumPy, candidate by candidate / exact BNS"], 100.0)],
                ["the same in the first epochs, where early stopping helps least",
                 f"{ratio['plain NumPy, candidate by candidate / exact BNS, first epochs']:.0f}"],
                ["candidates at once", f"{ratio['plain NumPy, candidates at once / exact BNS']:.0f}"],
            ],
        ),
    ]  # fmt: skip


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
        table(["epoch", "seconds", "peak memory, GiB"], rows),
        folded(
            "Error of the summaries",
            "Factor between the rank that a summary gives to an item and its true rank: medians over 200 users after each "
            "epoch, of summaries as the epoch left them and of fresh ones; last the 90% quantile after the last epoch.",
            table(["rank", *heads, "last, 90%, as left", "last, 90%, fresh"], errors),
        ),
    ]


AGES: Final = {"tail_error": "as left", "tail_error_fresh": "fresh"}


LOOKED_AT: Final = "bare product and a look at each score"
LOOKED_UP: Final = "the same and a look-up for each score"


def evaluation(result: Result) -> list[str]:
    rows = []
    for case in result["cases"]:
        ratio = case["ratio to the bare product"]
        rows.append(
            [f"{NAMES.get(case['data'], case['data'])}, d = {case['dim']}", milliseconds(case["seconds"]["bare product"]),
             milliseconds(case["seconds"]["evaluation, all metrics"]), f"{ratio['evaluation, all metrics']:.2f}",
             *(f"{ratio[what]:.2f}" for what in ("evaluation without AUC", LOOKED_AT, LOOKED_UP))]
        )  # fmt: skip
    reached = "reached" if result["reached"] else "**not reached**"
    return [
        "## Evaluation over the full catalogue",
        f"All metrics at 5, 10 and 20 against the bare product of the vectors. The goal, on MovieLens-1M at d = 32, "
        "was "
        f"{result['goal']:g} times its time: {result['ratio']:.2f}, {reached}. The AUC needs the rank of every test item. "
        "The last two columns are lower bounds: the product with one read of each score, and with one table look-up for "
        "each.",
        table(
            [
                "data",
                "bare product, ms",
                "all metrics, ms",
                "ratio",
                "ratio without AUC",
                "product and one read per score, ratio",
                "product and one table look-up per score, ratio",
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
            [label, *(milliseconds(found["seconds_per_epoch"][n]) for n in ("1", "2")), f"{found['2 threads / 1']:.2f}",
             f"{signed(gap['mean'])} ({signed(low)} to {signed(high)})", str(len(found["ndcg@20"]["1"]))]
        )  # fmt: skip
    return [
        "## A second thread",
        "`MF(threads=2)` trains without locks (Hogwild). NDCG@20 on MovieLens-100K, epoch 100, difference paired by seed "
        "with its 95% interval.",
        table(["sampler", "1 thread, ms", "2 threads, ms", "ratio", "NDCG@20, 2 threads − 1", "seeds"], rows),
    ]


def ceilings(result: Result) -> list[str]:
    units = {"vectors": "vectors in random order", "numbers": "numbers in a row", "products": "multiply-adds"}
    parts = [
        "## What limits each kernel",
        "Each kernel beside its floor: the slowest of reading the same vectors in random order, reading the same numbers "
        "in sequence, and the same matrix product. The floor of exact F leaves out the sweep of the catalogue; draws "
        "(hashing and bit look-ups) have no floor here.",
    ]
    for data, found in result.items():
        if data not in NAMES:
            continue
        per = found["seconds per"]
        rows = [
            [label, milliseconds(kernel["seconds"]), milliseconds(kernel["floor"]), units[kernel["limit"]],
             f"{kernel['times the floor']:.1f}"]
            for label, kernel in found["kernels"].items()
        ]  # fmt: skip
        parts += [
            f"{NAMES[data]}: a vector takes {per['vectors'] * 1e9:.1f} ns, numbers come at "
            f"{4 / per['numbers'] / 1e9:.1f} GB/s, products at {2 / per['products'] / 1e9:.0f} GFLOP/s.",
            table(["kernel", "ms", "floor, ms", "the floor is", "times the floor"], rows),
        ]
    return parts


SECTIONS: Final[dict[str, Callable[[Result], list[str]]]] = {
    "speed/bench_cdf": refreshed,
    "quality/score_cdf": refreshed_quality,
    "quality/over_time": plots.quality_time,
    "speed/bench_peers": peers,
    "speed/bench_epoch": plain,
    "speed/bench_scaling": plots.scaling,
    "speed/bench_million": million,
    "speed/bench_evaluation": evaluation,
    "speed/bench_reading": reading,
    "speed/bench_threads": threads,
    "speed/bench_losses": weighted.losses,
    "speed/bench_pools_cpu": weighted.pools,
    "speed/bench_pools_cuda": weighted.pools,
    "speed/bench_drop_in_cpu": weighted.drop_in,
    "speed/bench_drop_in_cuda": weighted.drop_in,
    "speed/bench_ceilings": ceilings,
    "speed/bench_serving": serving.section,
}


def _over(ratio: float, goal: float) -> str:
    return f"{ratio:.0f} ({'reached' if ratio >= goal else '**not reached**'})"


def _times(log: float) -> str:
    return f"{np.exp(log):,.2f}"
