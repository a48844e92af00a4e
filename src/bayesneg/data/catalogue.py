"""The built-in datasets on one page: what each is, whose it is, and where it is looked for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bayesneg.errors import DataError, InputError

_GROUPLENS_TERMS = (
    "{name} belongs to GroupLens Research, University of Minnesota. It is free for research: cite Harper and Konstan, "
    '"The MovieLens Datasets: History and Context", ACM TiiS 5(4), 2015, in what you publish with it. Do not pass the '
    "data on, do not use it to earn money without asking GroupLens first, and do not suggest that GroupLens or the "
    "university stands behind your work. They promise nothing about its correctness. The README beside the data has "
    "the full conditions."
)


@dataclass(frozen=True)
class BuiltIn:
    """One line of ``bayesneg data list``."""

    name: str
    what: str
    terms: str  # the owner's, in short
    how: str  # how to get it


def _movielens(name: str, what: str) -> BuiltIn:
    return BuiltIn(name, what, _GROUPLENS_TERMS.format(name=name), f"run: bayesneg data get {name}")


BUILT_IN = {
    dataset.name: dataset
    for dataset in (
        BuiltIn("synthetic", "a generated world whose truth is known", "none, it is generated", "nothing to get"),
        _movielens("ml-100k", "MovieLens-100K: 100,000 ratings, 943 users, 1,682 films, occupations"),
        _movielens("ml-1m", "MovieLens-1M: 1,000,209 ratings, 6,040 users, 3,706 films, occupations"),
        BuiltIn(
            "yahoo-r3",
            "Yahoo!-R3: the first 5,400 users of both files, 183,179 ratings of 1,000 songs",
            "Yahoo lends it for research under a signed agreement and forbids copies",
            "ask Yahoo Webscope for R3 and put ydata-ymusic-rating-study-v1_0-train.txt and …-test.txt there",
        ),
        BuiltIn(
            "kuairec",
            "KuaiRec small matrix: 217,175 positives, 1,411 users, 3,319 videos; absent pairs are real negatives",
            "CC BY-SA 4.0, by its authors at Kuaishou and USTC",
            "get KuaiRec from its authors (kuairec.com) and put its small_matrix.csv there",
        ),
        BuiltIn(
            "gowalla",
            "Gowalla check-ins, the LightGCN split: 1,027,370 of 29,858 users with 40,981 places",
            "none stated by the publishers of the split",
            "put train.txt and test.txt of the LightGCN repository there",
        ),
        BuiltIn(
            "yelp2018",
            "Yelp2018, the LightGCN split: 1,561,406 of 31,668 users with 38,048 businesses",
            "none stated by the publishers of the split",
            "put train.txt and test.txt of the LightGCN repository there",
        ),
    )
}


def data_folder(data_dir: str | Path | None = None) -> Path:
    """Where built-in datasets live: ``data_dir``, else BAYESNEG_DATA, else the user's own data folder."""
    if data_dir is not None:
        return Path(data_dir).expanduser()
    if os.environ.get("BAYESNEG_DATA"):
        return Path(os.environ["BAYESNEG_DATA"]).expanduser()
    share = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(share).expanduser() / "bayesneg"


def where(name: str, *, data_dir: str | Path | None = None) -> Path | None:
    """The folder of a built-in dataset if it is there."""
    folder = data_folder(data_dir) / built_in(name).name
    return folder if folder.is_dir() else None


def found(name: str, *, data_dir: str | Path | None = None) -> Path:
    """The folder of a built-in dataset; if it is absent, the error says how to get it."""
    folder = where(name, data_dir=data_dir)
    if folder is None:
        dataset = built_in(name)
        place = data_folder(data_dir) / name
        terms = "" if dataset.how.startswith("run:") else f" ({dataset.terms})"
        raise DataError(f"{name} is not in {place}; {dataset.how}{terms}")
    return folder


def terms(name: str) -> str:
    """The owner's terms in short."""
    return built_in(name).terms


def built_in(name: str) -> BuiltIn:
    """The entry of a name; another name is an error that lists the valid ones."""
    if name not in BUILT_IN:
        raise InputError(f"{name!r} is no built-in dataset; these are {', '.join(BUILT_IN)}")
    return BUILT_IN[name]
