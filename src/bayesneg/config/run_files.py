"""A run file, as a person or a run folder wrote it: checked key by key, with the line of what is wrong.

data = "ratings.csv"          # keys are the options of bayesneg train, with _ for -
split_by = "user"
epochs = 40
loss = "softmax:temperature=0.2"

[model]                       # or model = "mf:dim=64", as in Python
name = "mf"
dim = 64

[sampler]                     # settings of its prior and likelihood are written beside its own
name = "bns"
prior = "learned"

Paths are relative to the file. A file never runs code that the person who reads it did not allow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bayesneg.config.build import typed
from bayesneg.config.custom import is_custom, named_code
from bayesneg.config.loss_specs import LossSpec
from bayesneg.config.registry import MODELS
from bayesneg.config.settings import Settings, assignments, check_known
from bayesneg.config.specs import SamplerSpec, pieces
from bayesneg.config.toml_files import KINDS, TomlFile, kind_of, read_toml
from bayesneg.config.writing import OBJECT
from bayesneg.data.catalogue import BUILT_IN
from bayesneg.errors import InputError

PARTS: Final = ("model", "sampler", "loss")
ELSEWHERE: Final = {  # what a run is not made of, and where it is given
    "out": "name the folder of a run on the command line, --out",
    "resume": "resume a run on the command line, --resume",
    "track": "name a tracker on the command line, --track",
    "json": "give --json on the command line",
    "quiet": "give --quiet on the command line",
    "allow_code": "allow code on the command line, --allow-code",
    "set": "write a setting into the table [model] or [sampler]",
    "settings": "write a setting into the table [model] or [sampler]",
    "prior": "the prior is a setting of the sampler; write it into the table [sampler]",
}


@dataclass(frozen=True)
class NamedPart:
    """A model, sampler or loss by name, with its settings."""

    name: str
    settings: Settings = field(default_factory=dict)

    @property
    def text(self) -> str:
        """As the command line takes it."""
        return ":".join((self.name, *self.assigned))

    @property
    def assigned(self) -> list[str]:
        return [f"{key}={value}" for key, value in self.settings.items()]


@dataclass(frozen=True)
class RunFile:
    """What a run file asks for."""

    options: Mapping[str, Any]  # name of an option → value
    parts: Mapping[str, NamedPart]  # "model", "sampler", "loss", as far as they are given


def read_run_file(path: Path, kinds: Mapping[str, Any], *, without: tuple[str, ...], allow_code: bool) -> RunFile:
    """Read a run file.

    Args:
        path: The file.
        kinds: Name of an option → the type of its value: str, int, float, bool, Path or list.
        without: Keys that are replaced on the command line: they must be known, and are not read further.
        allow_code: Whether the file may name Python files to run.

    Returns:
        The options with paths made absolute, and the parts with checked settings.
    """
    file = read_toml(path)
    options: dict[str, Any] = {}
    parts: dict[str, NamedPart] = {}
    for key, value in file.values.items():
        if key in ELSEWHERE:
            raise file.error(f"{key} is no key of a run file; {ELSEWHERE[key]}", key)
        _about(file, lambda key=key: check_known(key, [*kinds, *PARTS], "key of a run file"), key)  # type: ignore[misc]
        if key in without:
            continue
        if key in PARTS:
            parts[key] = _part(file, key, value, allow_code)
        else:
            options[key] = _option(file, key, value, kinds[key])
    return RunFile(options, parts)


def _option(file: TomlFile, key: str, value: Any, kind: Any) -> Any:
    """The value as the command line gives it."""
    wanted = {Path: str}.get(kind, kind)
    if key.endswith("_column") and isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # a position
    if key.endswith("_columns") and isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ",".join(value)
    fits = isinstance(value, int | float if wanted is float else wanted)
    if not fits or (isinstance(value, bool) and wanted is not bool):
        raise file.error(f"{key} must be {KINDS[wanted]}, got {kind_of(value)}", key)
    if kind is Path and str(value).startswith(OBJECT):
        raise file.error(
            f'the {key} of this run was a run in memory, which no folder holds; save it with run.save("folder"), and '
            f'write {key} = "folder", or --{key} folder on the command line',
            key,
        )
    if kind is Path or (key == "data" and value not in BUILT_IN):
        absolute = (file.path.parent / Path(value).expanduser()).resolve()
        return absolute if kind is Path else str(absolute)
    return float(value) if wanted is float else value


def _part(file: TomlFile, key: str, value: Any, allow_code: bool) -> NamedPart:
    if isinstance(value, str) and value.startswith(OBJECT):
        what = value.removeprefix(OBJECT)
        raise file.error(
            f"the {key} of this run was a Python object, {what}, which no settings describe; train it in Python, or "
            f'name the class with its file, {key} = "file.py:{what.rpartition(".")[2]}"',
            key,
        )
    if isinstance(value, str):
        name, *rest = pieces(value)
        part = NamedPart(name, _about(file, lambda: assignments(rest, f"{key} {name}"), key))
    elif isinstance(value, dict):
        part = NamedPart(*_table(file, key, value))
    else:
        raise file.error(f"{key} must be text or a table, got {kind_of(value)}", key)
    for setting, given in {"name": part.name, **part.settings}.items():
        if (code := named_code([given])) and not allow_code:
            raise file.error(
                f"{key} names {code}, whose code would be run; read it, then add --allow-code", key, setting
            )
    part = _beside(file.path.parent, part)
    _check_part(file, key, part)
    return part


def _table(file: TomlFile, key: str, table: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    if not isinstance(table.get("name"), str):
        example = {"model": "mf", "sampler": "bns", "loss": "bpr"}[key]
        raise file.error(f'[{key}] needs a name, such as name = "{example}"', key, "name")
    settings = {name: value for name, value in table.items() if name != "name"}
    for name, value in settings.items():
        if isinstance(value, dict | list):
            raise file.error(
                f"{key}.{name} must be one value, got {kind_of(value)}; settings of a part such as the prior are "
                f"written beside those of the {key}",
                key,
                name,
            )
        if ":" in str(value) and not named_code([value]):
            raise file.error(f"{key}.{name} must not have a colon, got {kind_of(value)}", key, name)
    return str(table["name"]), settings


def _beside(folder: Path, part: NamedPart) -> NamedPart:
    """Files that a part names, found from the folder of the run file."""

    def found(text: Any) -> Any:
        if not isinstance(text, str) or not named_code([text]):
            return text
        return "+".join(str(folder.resolve() / each) if is_custom(each) else each for each in text.split("+"))

    settings = {key: found(value) for key, value in part.settings.items()}
    if "rejected" in settings:
        settings["rejected"] = str((folder / Path(str(settings["rejected"])).expanduser()).resolve())
    return NamedPart(found(part.name), settings)


def _check_part(file: TomlFile, key: str, part: NamedPart) -> None:
    """Known names and settings with the right types; the line is that of the setting which the error names."""
    try:
        if key == "model":
            check_known(part.name, MODELS, "model")
            typed(MODELS[part.name], part.settings, f"model {part.name}")
        else:
            kind = SamplerSpec if key == "sampler" else LossSpec
            kind.parse(part.text).checked()
    except InputError as error:
        named = [name for name in part.settings if re.search(rf"\b{name}=|'{name}'|: {name} (?:is|must)", str(error))]
        raise file.error(error, key, *named[:1] or ["name"]) from None


def _about(file: TomlFile, action: Callable[[], Any], *keys: str) -> Any:
    try:
        return action()
    except InputError as error:
        raise file.error(error, *keys) from None
