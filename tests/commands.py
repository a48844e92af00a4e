"""Commands called in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from bayesneg.cli import main
from bayesneg.progress import COMPILING


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """stdout, which must be one JSON object on one line and nothing else."""
        assert self.code == 0, self.err
        assert self.out.count("\n") == 1
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The one sentence that a mistake gets."""
        assert (self.code, self.out) == (2, ""), self.err
        assert self.err.startswith("error: ")
        assert self.err.count("\n") == 1
        return self.err.removeprefix("error: ").rstrip("\n")


Command = Callable[..., Outcome]


@pytest.fixture
def bayesneg(capsys: pytest.CaptureFixture[str]) -> Command:
    """``bayesneg("train", path, "--epochs", 2)`` as from the command line."""

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        err = said.err.replace(f"{COMPILING}\n", "", 1)  # where no test before has compiled them
        return Outcome(int(ended.value.code or 0), said.out, err)

    return run
