"""The part of docs/explanation/speed.md about ``bayesneg serve``."""

from __future__ import annotations

from typing import Any

from benchmarks.pages.text import table


def section(result: dict[str, Any]) -> list[str]:
    rows = []
    for catalogue in result["catalogues"]:
        for search, lines in catalogue["served"].items():
            for line in lines:
                if "clients" in line:
                    rows.append(
                        [f"{catalogue['items']:,}", search, str(line["clients"]), f"{line['per_second']:,.0f}",
                         f"{line['p50_ms']:,.1f}", f"{line['p99_ms']:,.1f}"]
                    )  # fmt: skip
    facts = [
        [f"{each['items']:,}", f"{each['users']:,}", f"{each['export_seconds']:,.0f}",
         *(f"{each['recall'][k]:.4f}" for k in ("10", "100")),
         *(f"{each['served'][search][-1]['mebibytes']:,.0f}" for search in ("exact", "index"))]
        for each in result["catalogues"]
    ]  # fmt: skip
    loads = [line["load"] for each in result["catalogues"] for lines in each["served"].values() for line in lines[:-1]]
    return [
        "## Serving",
        "`bayesneg serve` answers `/recommend?k=10` of random users, known items excluded. Clients keep their connection and ask as fast "
        "as answers come. They are one process, on the same two cores as the server. The small catalogue is MF (d = 64) "
        "trained on MovieLens-1M; the large one has vectors drawn from that model with noise.",
        table(["items", "search", "clients", "requests a second", "p50, ms", "p99, ms"], rows, text_columns=2),
        "Export with an index, its recall against exact search, and the resident memory of the server:",
        table(
            ["items", "users", "export, s", "recall@10", "recall@100", "MiB, exact", "MiB, index"], facts, text_columns=1
        ),
        *_reload(result.get("reload")),
        *_memory(result.get("memory")),
        f"The load average of the machine was {min(loads):.1f} to {max(loads):.1f} after a measurement; server and clients make about 2 of "
        "it, and what is above slowed them down.",
    ]  # fmt: skip


def _reload(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    answered = found["statuses"].get("200", 0)
    return [
        f"Reloads under load: {found['reloads']['loaded']} reloads by SIGHUP and by a replaced export, {found['requests']:,} requests of eight "
        f"clients, {found['requests'] - answered:,} of them lost or refused; p99 {found['p99_ms']:,.0f} ms."
    ]


def _memory(found: dict[str, Any] | None) -> list[str]:
    if found is None:
        return []
    sizes = found["mebibytes"]
    return [
        f"Memory over {found['requests']:,} requests of every kind, unknown identifiers among them: {sizes[0][1]:.0f} MiB after the first "
        f"{sizes[0][0]:,}, {sizes[len(sizes) // 2 - 1][1]:.0f} MiB after half of them, {sizes[-1][1]:.0f} MiB at the end."
    ]
