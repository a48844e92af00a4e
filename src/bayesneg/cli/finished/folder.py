"""The folder of a finished run, as these commands take it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="a run folder that train --out or compare --out wrote")]
