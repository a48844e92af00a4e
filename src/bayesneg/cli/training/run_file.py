"""``bayesneg train run.toml``: the options of a file, below those of the command line."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin

from bayesneg.cli import options as opt
from bayesneg.cli.training.listings import BriefHelp
from bayesneg.errors import InputError

if TYPE_CHECKING:
    from bayesneg.config.run_files import RunFile

SUBJECT: Final = re.compile(r"(?:(?:model|sampler|loss) \S+: )?(?:--)?(?P<name>[a-z0-9]+(?:[_-][a-z0-9]+)*)\b")
OPTION_OF: Final = {"test": "test_share", "by": "split_by"}  # argument of split → key
OF_LABEL: Final = {"model", "sampler", "loss", "settings", "device"}  # options that a label speaks of


def run_file_of(data: str) -> Path | None:
    """The run file that DATA names, or that of a final run, which has nothing held out; None for other data."""
    from bayesneg.cli.training.run_data import is_final
    from bayesneg.runs.folder import RUN_FILE

    if data.lower().endswith(".toml"):
        return Path(data)
    return Path(data) / RUN_FILE if is_final(Path(data)) else None


class TrainCommand(BriefHelp):
    """A command whose DATA may be a run file."""

    def invoke(self, ctx: Any) -> Any:
        path = run_file_of(ctx.params["data"])
        if path is None:
            return super().invoke(ctx)
        given = {name for name in ctx.params if ctx.get_parameter_source(name).name == "COMMANDLINE"}
        ctx.params.update(merged(path, ctx.params, given, self.kinds()))
        try:
            return super().invoke(ctx)
        except InputError as error:
            raise placed(error, path, given) from error

    def kinds(self) -> dict[str, Any]:
        """Name of an option → the type of its value."""
        annotations: Mapping[str, Any] = self.callback.__annotations__ if self.callback else {}
        return {name: _kind(kind) for name, kind in annotations.items() if name != "return"}


def merged(path: Path, params: Mapping[str, Any], given: Collection[str], kinds: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a run file changes.

    Args:
        path: The run file.
        params: Every parameter of the command.
        given: Names of those that are on the command line, which win; DATA is the file itself.
        kinds: Name of a parameter → the type of its value.

    Returns:
        Name → value.
    """
    from bayesneg.config.registry import BASELINES
    from bayesneg.config.run_files import ELSEWHERE, PARTS, read_run_file

    known = {name: kind for name, kind in kinds.items() if name not in (*ELSEWHERE, *PARTS, "help_all")}
    replaced = {name for name in given if name != "data"}
    if "model" in given and params["model"] in BASELINES:
        replaced |= {"sampler", "loss", "epochs", "evaluate_every", "evaluate_users", "patience", "start"}
    file = read_run_file(path, known, without=tuple(replaced & {*known, *PARTS}), allow_code=params["allow_code"])
    if "data" not in file.options:
        raise InputError(f'{path}: data is missing; add data = "…", a file, a folder or a built-in dataset')
    found = {**file.options, **_parts(file, params, given)}
    if replaced & _of_data():
        found.pop("fingerprint", None)  # other data, or another split, is asked for
    if replaced & OF_LABEL:
        found.pop("label", None)
    if "sampler" in found and "label" not in found and "label" not in given:
        found["label"] = _label(found["sampler"], params["settings"] or (), found.get("model", params["model"]) or "mf")
    return found


def placed(error: InputError, path: Path, given: Collection[str]) -> InputError:
    """The error with the line of the run file that it is about; as it is where that is no line of the file.

    Args:
        error: What a value of the file led to; its first word is an option, an argument or a setting.
        path: The run file.
        given: Names of the options that are on the command line.
    """
    from bayesneg.config.run_files import PARTS
    from bayesneg.config.toml_files import read_toml

    found = SUBJECT.match(str(error))
    if found is None:
        return error
    key = found["name"].replace("-", "_")
    key = OPTION_OF.get(key, key)
    file = read_toml(path)
    if key in file.values and key not in given:
        return file.error(f"{key}{str(error)[found.end('name') :]}", key)
    for part in PARTS:
        table = file.values.get(part)
        if isinstance(table, dict) and key in table and part not in given:
            return file.error(error, part, key)
    return error


def _parts(file: RunFile, params: Mapping[str, Any], given: Collection[str]) -> dict[str, Any]:
    """The model, sampler and loss as the command line takes them; --set changes single settings of the file."""
    from bayesneg.config.registry import MODELS
    from bayesneg.config.run_files import NamedPart
    from bayesneg.config.settings import assignments, settings_of
    from bayesneg.config.specs import SamplerSpec

    own = assignments(params["settings"] or (), "--set")
    found: dict[str, Any] = {}
    model, sampler, loss = (file.parts.get(name) for name in ("model", "sampler", "loss"))
    if loss is not None:
        found["loss"] = loss.text
    name = (params["model"] or "mf") if model is None else model.name
    of_model = settings_of(MODELS[name]) if name in MODELS else {}
    if model is not None:
        dropped = {*own, *(["device"] if "device" in given else [])}
        kept = {key: value for key, value in model.settings.items() if key not in dropped}
        found |= {"model": name, "settings": [*_assigned(kept), *_assigned(own)]}
    if sampler is not None:
        changes = {key: value for key, value in own.items() if key not in of_model}
        kept = {key: value for key, value in sampler.settings.items() if key not in changes}
        if changes:  # another prior has other settings
            known = SamplerSpec.parse(sampler.name).known({**kept, **changes})
            kept = {key: value for key, value in kept.items() if key in known}
        found["sampler"] = NamedPart(sampler.name, kept).text
    return found


def _assigned(settings: Mapping[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in settings.items()]


def _label(sampler: str, sets: Sequence[str], model: str) -> str:
    """The sampler by what differs from the defaults."""
    from bayesneg.config.build import canonical
    from bayesneg.config.specs import SamplerSpec, sort_settings

    spec = sort_settings(sets, model, [SamplerSpec.parse(sampler)])[1][0]
    presets = spec.named.presets
    different = canonical(spec.named.kind, {**presets, **spec.settings}, spec.name)
    shown = {key: value for key, value in different.items() if key in spec.settings and presets.get(key) != value}
    return SamplerSpec(spec.name, shown).label


def _of_data() -> set[str]:
    """The options that decide what data and which split there is."""
    return {item.name for kind in (opt.Reading, opt.Selecting) for item in fields(kind)} - {"data", "select"}


def _kind(annotation: Any) -> Any:
    """``Annotated[int | None, …]`` → int."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(kind for kind in get_args(annotation) if kind is not type(None))
    return get_origin(annotation) or annotation
