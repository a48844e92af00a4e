"""The OpenAPI page at ``/docs``: drawn from the schema by the server, so that a browser loads nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from starlette.responses import HTMLResponse

POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
STYLE = """
:root { color-scheme: light dark; --edge: #8885; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
section { border-top: 1px solid var(--edge); padding: .5rem 0 1rem; }
h2 { font-size: 1.1rem; } h2 code { margin-right: .5rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; }
td, th { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; }
pre { overflow-x: auto; padding: .6rem; border: 1px solid var(--edge); border-radius: 4px; }
form { display: flex; flex-wrap: wrap; gap: .5rem; margin: .6rem 0; } input { font: inherit; width: 10rem; }
"""
EXAMPLES: Mapping[str, Any] = {"users": [1, 2], "items": [12, 99, 3], "exclude": [7], "only": [7, 8]}


def openapi_page(schema: Mapping[str, Any]) -> HTMLResponse:
    """A page with every path: its parameters, a form where it takes GET, and a command.

    Args:
        schema: The OpenAPI schema of the application.
    """
    info = schema["info"]
    title = escape(f"{info['title']} {info['version']}")
    sections = "".join(
        _section(path, method, operation, schema)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    )
    text = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        f"<meta name=viewport content='width=device-width, initial-scale=1'><style>{STYLE}</style>"
        f"<h1>{title}</h1><p>{_marked(info['description'])}</p>"
        f"<p>The schema: <a href='openapi.json'>openapi.json</a></p>{sections}</html>"
    )
    return HTMLResponse(text, headers={"content-security-policy": POLICY, "x-content-type-options": "nosniff"})


def _marked(text: str) -> str:
    """
    >>> _marked("a `<b>` here")
    'a <code>&lt;b&gt;</code> here'
    """
    parts = [escape(part) for part in text.strip().split("`")]
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))


def _section(path: str, method: str, operation: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    fields = list(_fields(operation, schema))
    title = f"<h2><code>{method.upper()} {escape(path)}</code>{escape(operation['summary'])}</h2>"
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code><td>{escape(_kind(kind))}<td>{escape(_default(kind, needed))}"
        f"<td>{escape(kind.get('description', ''))}"
        for name, kind, needed in fields
    )
    head = "<tr><th>parameter<th>type<th>unless given<th>meaning"
    listed = f"<div class=scroll><table>{head}{rows}</table></div>" if rows else ""
    shown = _form(path, fields) if method == "get" else f"<pre>{escape(_command(path, fields))}</pre>"
    return f"<section>{title}{listed}{shown}</section>"


def _fields(operation: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """The name of each parameter, its schema, and whether it must be given."""
    for one in operation.get("parameters", ()):
        yield one["name"], {"description": one.get("description", ""), **one["schema"]}, one["required"]
    if "requestBody" in operation:
        name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        body = schema["components"]["schemas"][name]
        for field, kind in body["properties"].items():
            yield field, kind, field in body.get("required", ())


def _kind(kind: Mapping[str, Any]) -> str:
    """
    >>> _kind({"type": "integer", "minimum": 1}), _kind({"anyOf": [{"type": "array"}, {"type": "null"}]})
    ('integer, at least 1', 'list')
    """
    names = [one.get("type", "") for one in kind.get("anyOf", [kind])]
    named = " or ".join("list" if name == "array" else name for name in names if name != "null")
    return f"{named}, at least {kind['minimum']:g}" if "minimum" in kind else named


def _default(kind: Mapping[str, Any], needed: bool) -> str:
    return "must be given" if needed else json.dumps(kind["default"]) if kind.get("default") is not None else "–"


def _form(path: str, fields: list[tuple[str, Mapping[str, Any], bool]]) -> str:
    inputs = "".join(
        f"<input name='{escape(name)}' placeholder='{escape(name)}' aria-label='{escape(name)}' required>"
        for name, _, needed in fields
        if needed
    )
    return f"<form action='{escape(path.lstrip('/'))}'>{inputs}<button>Ask</button></form>"


def _command(path: str, fields: list[tuple[str, Mapping[str, Any], bool]]) -> str:
    body = {name: EXAMPLES.get(name, 10) for name, _, needed in fields if needed}
    return f"curl -H 'content-type: application/json' -d '{json.dumps(body)}' HOST:PORT{path}"
