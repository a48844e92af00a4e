"""Generated bad tables and specs: each is read, or refused with a sentence of ours."""

from __future__ import annotations

import math
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import bayesneg as bn
from bayesneg.config.loss_specs import parse_losses
from bayesneg.config.specs import build_model, parse_priors, parse_samplers
from bayesneg.errors import BayesnegError
from bayesneg.reproduction.sweeps.recipe import Recipe

SLOW = 20.0  # seconds of one input, which count as a hang
CELLS = st.one_of(
    st.integers(-3, 9).map(str),
    st.sampled_from(
        ["", "nan", "inf", "-0", "1e400", "9" * 40, "\x00", "\ufeff", "'", '"', '""', "a,b", "é", "💥", "\r"]
    ),
    st.text(max_size=4),
)
NAMES = st.sampled_from(["user", "item", "user_id", "item_id", "rating", "timestamp", "label", "", "USER", "user "])
WORDS = st.one_of(
    st.sampled_from(
        ["rns", "bns", "dns", "pns", "srns", "aobpr", "dens", "mixgcf", "ahns", "warm", "bpr", "softmax", "ccl", "psl"]
    ),
    st.sampled_from(
        ["candidates", "weight", "prior", "cdf", "likelihood", "temperature", "negative_weight", "dim", "shared"]
    ),
    st.sampled_from(
        ["=", ":", ",", "::", "==", "-", "1e999", "nan", "-1", "0", "10**9", "true", "null", "file.py:X", "'"]
    ),
    st.text(max_size=3),
)
RECIPES = st.one_of(
    st.sampled_from(["title", "datasets", "views", "seeds", "epochs", "[[samplers]]", "label", "use", "[models]"]),
    st.sampled_from([" = ", "\n", '"rns"', "[1, 2]", "-1", "1e400", "true", '["last"]', "'x'", "{}", "[", "]]"]),
    st.text(max_size=3),
)


def tables() -> st.SearchStrategy[tuple[str, bytes]]:
    """The ending of a file, and its bytes."""
    rows = st.lists(st.lists(CELLS, min_size=0, max_size=4), max_size=6)
    heads = st.one_of(st.lists(NAMES, max_size=4), st.just(["user", "item"]))
    marks = st.sampled_from([",", "\t", "|", "::", ";", " "])
    ends = st.sampled_from(["\n", "\r\n", "\r"])

    def joined(head: list[str], body: list[list[str]], mark: str, end: str, tail: bytes) -> bytes:
        lines = [mark.join(row) for row in ([head] if head else []) + body]
        return end.join(lines).encode("utf-8", "surrogatepass") + tail

    text = st.builds(joined, heads, rows, marks, ends, st.one_of(st.just(b"\n"), st.binary(max_size=4)))
    endings = st.sampled_from([".csv", ".tsv", ".txt", ".dat", ".parquet", ".csv.gz", ".inter", ".json"])
    return st.tuples(endings, st.one_of(text, st.binary(max_size=60)))


def run(place: Path, count: int, first_seed: int) -> int:
    """Try ``count`` inputs; how many ended in neither a result nor a sentence."""
    outcomes: Counter[str] = Counter()
    small = bn.split(bn.synthetic(20, 30, seed=0), seed=0)
    failures: list[str] = []

    def tried(what: str, call: Callable[[], Any], shown: object) -> None:
        begun = time.monotonic()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call()
            outcomes[f"{what}: read"] += 1
        except BayesnegError as error:
            outcomes[f"{what}: refused"] += 1
            if not str(error).strip():
                failures.append(f"{what}: {shown!r}: refused without a word")
        except BaseException as error:  # a panic of polars is no Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            failures.append(
                f"{what}: {shown!r}: {type(error).__name__}: {error!s:.200}\n{traceback.format_exc(limit=-3)}"
            )
        if time.monotonic() - begun > SLOW:
            failures.append(f"{what}: {shown!r}: took {time.monotonic() - begun:.0f} s")

    def table(given: tuple[str, bytes]) -> None:
        path = place / f"table{given[0]}"
        path.write_bytes(given[1])
        tried("tables", lambda: bn.load(path), given)

    def spec(words: list[str]) -> None:
        text = "".join(words)
        tried("samplers", lambda: [one.build(small) for one in parse_samplers(text)], text)
        tried("losses", lambda: parse_losses(text), text)
        tried("priors", lambda: parse_priors(text), text)

    def model(settings: dict[str, Any]) -> None:
        tried("models", lambda: build_model("mf", settings), settings)

    def recipe(words: list[str]) -> None:
        path = place / "recipe.toml"
        path.write_text("".join(words), encoding="utf-8", errors="surrogatepass")
        tried("recipes", lambda: Recipe.read(path), "".join(words))

    values = st.one_of(st.integers(), st.floats(), st.text(max_size=3), st.none(), st.booleans(), st.just([1]))
    kinds: list[tuple[Callable[..., None], st.SearchStrategy[Any], float, int]] = [
        (table, tables(), 0.4, 1),
        (spec, st.lists(WORDS, max_size=9), 0.4, 3),
        (model, st.dictionaries(WORDS, values, max_size=3), 0.1, 1),
        (recipe, st.lists(RECIPES, max_size=14), 0.1, 1),
    ]
    for check, strategy, share, each in kinds:
        how = settings(
            max_examples=max(1, math.ceil(count * share / each)), deadline=None, database=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        seed(first_seed)(how(given(strategy)(check)))()
    for text in failures[:20]:
        print(text)
    print(", ".join(f"{name} {n:,}" for name, n in sorted(outcomes.items())))
    print(f"{sum(outcomes.values()) + len(failures):,} inputs, {len(failures)} without a result or a sentence")
    return len(failures)
