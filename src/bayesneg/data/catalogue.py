"""The built-in datasets: what each is, whose it is, where it is looked for, and how it is downloaded."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bayesneg.errors import DataError, InputError

TIMEOUT: Final = 10.0  # seconds without a byte from the server
Progress = Callable[[int, int | None], None]  # bytes so far, and in total if known

_GROUPLENS_TERMS = (
    "{name} belongs to GroupLens Research, University of Minnesota. It is free for research: cite Harper and Konstan, "
    '"The MovieLens Datasets: History and Context", ACM TiiS 5(4), 2015, in what you publish with it. Do not pass the '
    "data on, do not use it to earn money without asking GroupLens first, and do not suggest that GroupLens or the "
    "university endorses your work. They promise nothing about its correctness. The README beside the data has "
    "the full conditions."
)


@dataclass(frozen=True)
class Archive:
    """A zip file at its owner's address; it holds one folder with the name of the dataset."""

    owner: str
    url: str
    sha256: str


@dataclass(frozen=True)
class BuiltIn:
    """One line of ``bayesneg data list``."""

    name: str
    what: str
    terms: str  # the owner's, in short
    how: str  # how to get it
    archive: Archive | None = None
    licence: str = "unknown"  # as a model card names it


@dataclass(frozen=True)
class Download:
    """Where a dataset is, and whether it was there before."""

    folder: Path
    already_there: bool


def _movielens(name: str, what: str, *, sha256: str) -> BuiltIn:
    archive = Archive("GroupLens", f"https://files.grouplens.org/datasets/movielens/{name}.zip", sha256)
    return BuiltIn(name, what, _GROUPLENS_TERMS.format(name=name), f"run: bayesneg data get {name}", archive, "other")


BUILT_IN = {
    dataset.name: dataset
    for dataset in (
        BuiltIn("synthetic", "a generated world whose truth is known", "none, it is generated", "nothing to get"),
        _movielens(
            "ml-100k",
            "MovieLens-100K: 100,000 ratings, 943 users, 1,682 films, occupations",
            sha256="50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
        ),
        _movielens(
            "ml-1m",
            "MovieLens-1M: 1,000,209 ratings, 6,040 users, 3,706 films, occupations",
            sha256="a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
        ),
        BuiltIn(
            "yahoo-r3",
            "Yahoo!-R3: the first 5,400 users of both files, 183,179 ratings of 1,000 songs",
            "Yahoo lends it for research under a signed agreement and forbids copies",
            "ask Yahoo Webscope for R3 and put ydata-ymusic-rating-study-v1_0-train.txt and …-test.txt there",
            licence="other",
        ),
        BuiltIn(
            "kuairec",
            "KuaiRec small matrix: 217,175 positives, 1,411 users, 3,319 videos; absent pairs are real negatives",
            "CC BY-SA 4.0, by its authors at Kuaishou and USTC",
            "get KuaiRec from its authors (kuairec.com) and put its small_matrix.csv there",
            licence="cc-by-sa-4.0",
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
    """The folder of built-in datasets: ``data_dir``, else BAYESNEG_DATA, else the user's data folder."""
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
    """The folder of a built-in dataset; if it is missing, the error names the way to get it."""
    folder = where(name, data_dir=data_dir)
    if folder is None:
        dataset = built_in(name)
        place = data_folder(data_dir) / name
        terms = "" if dataset.how.startswith("run:") else f" ({dataset.terms})"
        raise DataError(f"{name} is not in {place}; {dataset.how}{terms}")
    return folder


def built_in(name: str) -> BuiltIn:
    """The entry of a name; another name is an error that lists the valid ones."""
    if name not in BUILT_IN:
        raise InputError(f"{name!r} is no built-in dataset; these are {', '.join(BUILT_IN)}")
    return BUILT_IN[name]


def download(name: str, *, data_dir: str | Path | None = None, progress: Progress | None = None) -> Download:
    """Put a dataset that its owner offers for download into the data folder.

    The archive is kept beside the dataset's folder if its sha256 is the known one; the folder appears only when it is
    complete, and one that is already there is never replaced.

    Args:
        name: ``"ml-100k"`` or ``"ml-1m"``.
        data_dir: The data folder; see :func:`data_folder`.
        progress: Called with the bytes so far and, where it is known, their total.

    Returns:
        The dataset's folder, and whether it was there before.
    """
    archive = built_in(name).archive
    if archive is None:
        available = ", ".join(dataset.name for dataset in BUILT_IN.values() if dataset.archive)
        raise InputError(f"{name} cannot be downloaded, only {available} can; {built_in(name).how}")
    target = data_folder(data_dir) / name
    if target.exists():
        return Download(target, already_there=True)
    packed = _download(archive, target, progress)
    try:
        with tempfile.TemporaryDirectory(prefix=f"{name}.part-", dir=target.parent) as staging:
            with zipfile.ZipFile(packed) as opened:
                opened.extractall(staging)
            (Path(staging) / name).rename(target)
    except OSError as error:
        if target.exists():  # another process was faster
            return Download(target, already_there=True)
        raise DataError(f"{packed} cannot be unpacked ({error}); unpack it into {target} yourself") from error
    return Download(target, already_there=False)


def _download(archive: Archive, target: Path, progress: Progress | None) -> Path:
    """The archive beside ``target``; one that is there with the known sha256, put there by hand, is not downloaded."""
    import pooch

    pooch.get_logger().setLevel("WARNING")
    bar = _ProgressBar(progress) if progress is not None else False
    fetch = pooch.HTTPDownloader(progressbar=bar, timeout=TIMEOUT)
    packed = target.with_name(f"{target.name}.zip")
    try:
        pooch.retrieve(archive.url, f"sha256:{archive.sha256}", packed.name, packed.parent, downloader=fetch)
    except (OSError, ValueError) as error:  # requests' errors are OSErrors, a wrong sha256 is a ValueError
        reason = "its sha256 is not the known one" if isinstance(error, ValueError) else error
        raise DataError(
            f"{archive.url} could not be downloaded ({reason}); try again later, or download it with a browser, put it "
            f"there as {packed} and repeat the command"
        ) from error
    return packed


class _ProgressBar:
    """What pooch expects of a progress bar, as calls of ``progress``."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._done, self.total = progress, 0, 0

    def update(self, n_bytes: int) -> None:
        self._done = min(self._done + n_bytes, self.total) if self.total else self._done + n_bytes
        self._progress(self._done, self.total or None)

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        pass
