"""The pages of the reference: one for each public name, listed by where it lives.

A new public name has its page without a change here: the names are read from ``bayesneg.__all__`` and from the
namespaces. An object with several names has its page under the shortest one.
"""

from __future__ import annotations

import inspect
import re
import types
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import bayesneg

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = "reference/api"
# namespaces that are imported by themselves, beside those of bayesneg.__all__
INTEGRATIONS = tuple(f"bayesneg.integrations.{name}" for name in ("sentence_transformers", "pykeen", "word_overlap"))
MORE = ("bayesneg.torch", "bayesneg.torch.losses", *INTEGRATIONS, "bayesneg.interfaces")
MOCKED = ["sentence_transformers", "datasets", "pykeen"]  # large, and not needed to read a docstring
PROTOCOLS = ("Model", "Learner", "Scorer", "FollowsTraining", "TrackedRun")  # of bayesneg.interfaces, for custom models
TITLES = {
    "training": "Train",
    "data": "Data",
    "experiments": "Compare and audit",
    "tuning": "Tune",
    "models": "Models",
    "samplers": "Samplers",
    "interfaces": "Interfaces",
    "evaluation": "Evaluate",
    "recommendation": "New users and items",
    "runs": "Runs and results",
    "report": "Reports",
    "errors": "Errors",
}
ABOUT = {
    "bayesneg.samplers": "Samplers beside those at the top, and their parts; [what each does](../samplers.md).",
    "bayesneg.priors": "The prior of BNS; [what each is](../priors.md).",
    "bayesneg.likelihoods": "How a rank becomes evidence; [the derivation](../../explanation/equations.md).",
    "bayesneg.losses": "Functions of scores; [their formulas](../losses.md).",
    "bayesneg.baselines": "Models that sample nothing; [their formulas](../models.md).",
    "bayesneg.testing": "Contract checks for custom samplers and priors.",
    "bayesneg.tracking": "Where the numbers of a run go; [how to](../../how-to/experiments.md).",
    "bayesneg.torch": "For any training loop; [how to](../../how-to/torch.md).",
    "bayesneg.torch.losses": "The losses as functions of embeddings.",
    "bayesneg.integrations.sentence_transformers": "Text retrieval; "
    "[how to](../../how-to/integrations/sentence-transformers.md).",
    "bayesneg.integrations.pykeen": "Knowledge graphs; [how to](../../how-to/integrations/pykeen.md).",
    "bayesneg.integrations.word_overlap": "A prior for pairs of texts.",
    "bayesneg.interfaces": "What custom models, draws and observers implement.",
}


class Name(NamedTuple):
    path: str  # bayesneg.priors.Learned
    value: Any

    @property
    def sentence(self) -> str:
        """The first sentence of the docstring; of a constant, its value."""
        if not (inspect.isclass(self.value) or callable(self.value)):
            return f"`{self.value!r}`"
        first = (inspect.getdoc(self.value) or "").split("\n\n")[0].replace("\n", " ")
        first = re.sub(r":\w+:`~?([^`]+)`", lambda found: f"`{_short(found[1])}`", first)
        return first.partition(". ")[0].rstrip(".").replace("|", r"\|") + "."


def namespaces() -> list[str]:
    inside = [name for name in bayesneg.__all__ if isinstance(getattr(bayesneg, name), types.ModuleType)]
    return [*(f"bayesneg.{name}" for name in inside), *MORE]


def names_of(namespace: str) -> list[Name]:
    """The public names of a namespace, each with the path by which a user reaches it."""
    module = bayesneg if namespace == "bayesneg" else _module(namespace)
    listed = (
        PROTOCOLS
        if namespace == "bayesneg.interfaces"
        else getattr(module, "__all__", None)
        or [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
    )
    found = [Name(f"{namespace}.{name}", getattr(module, name)) for name in listed if name != "__version__"]
    return [name for name in found if not isinstance(name.value, types.ModuleType)]


def _module(namespace: str) -> types.ModuleType:
    parent, _, name = namespace.rpartition(".")
    if namespace in INTEGRATIONS:
        with _mocked():
            return import_module(namespace)
    try:
        return import_module(namespace)
    except ModuleNotFoundError:
        return getattr(import_module(parent), name)


def _mocked() -> AbstractContextManager[Any]:
    """Stand-ins for libraries that are not installed where the site is built."""
    if all(find_spec(name) for name in MOCKED):
        return nullcontext()
    from sphinx.ext.autodoc.mock import mock

    return mock(MOCKED)


def groups() -> dict[str, list[Name]]:
    """Title → names: those at the top by the room they live in, then the namespaces."""
    found: dict[str, list[Name]] = {}
    at_top = names_of("bayesneg")
    rooms = {f"bayesneg.{name}": home.split(".")[1] for home, names in bayesneg._HOMES.items() for name in names}
    for room, title in TITLES.items():
        found[title] = [name for name in at_top if rooms[name.path] == room]
    missing = set(rooms.values()) - TITLES.keys()
    if missing:
        raise ValueError(f"TITLES has no entry for {', '.join(sorted(missing))}")
    for namespace in namespaces():
        found[namespace] = names_of(namespace)
    return found


def pages() -> dict[str, Name]:
    """Path of each name → the name that has its page."""
    first: dict[int, Name] = {}
    found: dict[str, Name] = {}
    for names in groups().values():
        for name in names:
            shared = inspect.isclass(name.value) or inspect.isfunction(name.value)
            found[name.path] = first.setdefault(id(name.value), name) if shared else name
    return found


def write(folder: Path) -> None:
    """The list of all names, and a page for each."""
    folder.mkdir(parents=True, exist_ok=True)
    home, written = pages(), {"index.md": _index()}
    for name in {page.path: page for page in home.values()}.values():
        written[f"{name.path}.rst"] = _page(name)
    for path in folder.glob("*"):
        if path.name not in written:
            path.unlink()
    for file, text in written.items():
        path = folder / file
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _index() -> str:
    home = pages()
    lines = ["# Python", "", "`import bayesneg as bn`: everything that a user can reach, from the docstrings.", ""]
    for title, names in groups().items():
        lines += [f"## {title.replace('bayesneg.', 'bn.') if title.startswith('bayesneg.') else title}", ""]
        if title in ABOUT:
            lines += [ABOUT[title], ""]
        lines += ["| name | |", "| --- | --- |"]
        lines += [f"| [`{_short(name.path)}`]({home[name.path].path}.rst) | {name.sentence} |" for name in names]
        lines.append("")
    listed = "\n".join(sorted({page.path for page in home.values()}, key=str.lower))
    return "\n".join([*lines, "```{toctree}", ":hidden:", ":maxdepth: 1", "", listed, "```", ""])


def _short(path: str) -> str:
    return path.replace("bayesneg.torch.", "bnt.").replace("bayesneg.", "bn.")


def _page(name: Name) -> str:
    title = _short(name.path)
    kind = "class" if inspect.isclass(name.value) else "function" if callable(name.value) else "data"
    module, _, last = name.path.rpartition(".")
    other = [_short(path) for path, page in pages().items() if page.path == name.path != path]
    also = f"\nAlso ``{'``, ``'.join(other)}``.\n" if other else ""
    return f"{title}\n{'=' * len(title)}\n{also}\n.. currentmodule:: {module}\n\n.. auto{kind}:: {last}\n"


def resolve(app: Sphinx, env: Any, node: Any, content: Any) -> Any:
    """A reference in a docstring by any path or by the bare name: the page of the public name."""
    if node.get("refdomain") != "py":
        return None
    last = node["reftarget"].rpartition(".")[2]
    found = [page.path for path, page in pages().items() if path.rpartition(".")[2] == last]
    # a method by its bare name: that of the interface, if it has it
    known = (name for name in env.domains["py"].objects if name.endswith(f".{last}"))
    found += sorted(known, key=lambda name: (not re.search(r"\.(NegativeSampler|RuleSampler)\.", name), name))
    if not found:
        return None
    from sphinx.util.nodes import make_refnode

    page = env.domains["py"].objects[found[0]].docname
    return make_refnode(app.builder, node["refdoc"], page, found[0], content, found[0])


def keep_bars(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """|I| is the size of a set, and no substitution of reStructuredText."""
    for position, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = line.split("``")  # literals are at odd places
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[position] = "``".join(parts)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", lambda app, config: write(Path(app.srcdir) / FOLDER))
    app.connect("autodoc-process-docstring", keep_bars)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
