"""Load on ``bayesneg serve``: throughput and latency, requests lost over reloads, and memory over many requests.

    python -m benchmarks.speed.bench_serving [--seconds 8 --items 1000000 --requests 100000]

Two catalogues: MF (d = 64) trained on MovieLens-1M, and a million items and a hundred thousand users whose vectors are
those of that model, drawn at random with noise of 0.3 of their standard deviation; each user knows twenty items there.
Each is exported with an index, and served with it and by exact search. Clients keep their connection and ask for
``/recommend?k=10`` of random users as fast as answers come; they run in one process on the same cores as the server,
whose throughput is the lower for it; ``load`` is the load average of the machine after a measurement. Writes
results/speed/bench_serving.json after every measurement.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import numpy as np

import bayesneg as bn
from bayesneg.models.scorers import EmbeddingScorer
from benchmarks.machine import write_result

CLIENTS: Final = (1, 8, 64)
N_USERS, KNOWN, NOISE = 100_000, 20, 0.3
LOST: Final = "lost"  # in place of a status: the connection broke


def small() -> bn.Run:
    split = bn.split(bn.load("ml-1m"), test=0.2, seed=0)
    return bn.fit(bn.MF(dim=64, learning_rate=0.02), split, bn.RNS(), epochs=10, seed=0, progress=False)


def large(of: bn.Run, n_items: int) -> bn.Run:
    """A catalogue of many items with vectors like those of a trained model."""
    rng = np.random.default_rng(0)

    def like(vectors: np.ndarray, n: int) -> np.ndarray:
        noise = NOISE * vectors.std(axis=0) * rng.standard_normal((n, vectors.shape[1]))
        return (vectors[rng.integers(len(vectors), size=n)] + noise).astype(np.float32)

    vectors = of.scorer.embeddings()
    users = np.repeat(np.arange(N_USERS), KNOWN)
    data = bn.Interactions.from_numbers(
        users, rng.integers(n_items, size=len(users)),
        user_ids=np.arange(N_USERS), item_ids=np.arange(n_items), name="like ml-1m",
    )  # fmt: skip
    parts = bn.split(data, test=0.1, seed=0)
    record = bn.RunRecord(label="MF", seed=0, dataset="like ml-1m", model="MF", data={"n_items": n_items})
    return bn.Run(EmbeddingScorer(like(vectors.users, N_USERS), like(vectors.items, n_items)), parts, record)


@contextmanager
def served(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", "bayesneg", "serve", str(folder), "--port", "0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        process.stderr.readline()
        yield process, int(process.stderr.readline().split("/recommend")[0].rpartition(":")[2])
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


class Load:
    """Clients that ask one request after another until it is over, and what came of it."""

    def __init__(self, port: int, request: Callable[[], bytes]) -> None:
        self.port, self.request = port, request
        self.seconds: list[float] = []
        self.statuses: dict[str, int] = {}

    async def run(self, clients: int, is_over: Callable[[], bool]) -> float:
        started = time.perf_counter()
        await asyncio.gather(*(self._client(is_over) for _ in range(clients)))
        return time.perf_counter() - started

    async def _client(self, is_over: Callable[[], bool]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        while not is_over():
            begun = time.perf_counter()
            try:
                writer.write(self.request())
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                status = head.split(b" ", 2)[1].decode()
            except (OSError, asyncio.IncompleteReadError):
                status = LOST
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            self.seconds.append(time.perf_counter() - begun)
            self.statuses[status] = self.statuses.get(status, 0) + 1
        writer.close()


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def post(path: str, body: Any) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def recommending(run: bn.Run, seed: int) -> Callable[[], bytes]:
    rng, ids = np.random.default_rng(seed), run.split.train.user_ids.tolist()
    return lambda: get(f"/recommend?user={ids[rng.integers(len(ids))]}&k=10")


def mixed(run: bn.Run) -> Callable[[], bytes]:
    """Every kind of request, unknown identifiers among them."""
    rng = np.random.default_rng(1)
    users, items = run.split.train.user_ids.tolist(), run.split.train.item_ids.tolist()

    def one() -> bytes:
        item = items[rng.integers(len(items))]
        match rng.integers(5):
            case 0:
                return get(f"/similar?item={item}&k=20")
            case 1:
                return post("/fold-in", {"items": [item, items[rng.integers(len(items))]], "k": 20})
            case 2:
                return get(f"/recommend?user=unknown{rng.integers(1_000_000)}")
            case _:
                return get(f"/recommend?user={users[rng.integers(len(users))]}&k=20")

    return one


def throughput(port: int, run: bn.Run, clients: int, seconds: float) -> dict[str, Any]:
    for length in (1.0, seconds):  # the first warms up
        load = Load(port, recommending(run, clients))
        end = time.perf_counter() + length
        took = asyncio.run(load.run(clients, lambda end=end: time.perf_counter() > end))  # type: ignore[misc]
    p50, p99 = (1e3 * float(q) for q in np.quantile(load.seconds, (0.5, 0.99)))
    return {
        "clients": clients,
        "load": os.getloadavg()[0],
        "requests": len(load.seconds),
        "per_second": len(load.seconds) / took,
        "p50_ms": p50,
        "p99_ms": p99,
        "statuses": load.statuses,
    }


def reloads(folder: Path, run: bn.Run, seconds: float) -> dict[str, Any]:
    """Eight clients, a SIGHUP every half second, and the export replaced every three seconds."""
    with served(folder, "--watch", "0.2") as (process, port):
        load, end = Load(port, recommending(run, 0)), time.perf_counter() + seconds

        async def disturbed() -> None:
            turn = 0
            while time.perf_counter() < end:
                await asyncio.sleep(0.5)
                turn += 1
                process.send_signal(signal.SIGHUP)
                if turn % 6 == 0:
                    await asyncio.to_thread(run.export, folder, overwrite=True)

        async def both() -> None:
            await asyncio.gather(load.run(8, lambda: time.perf_counter() > end), disturbed())

        asyncio.run(both())
        found = measures(port)
    counts = {key: int(found[f'bayesneg_reloads_total{{outcome="{key}"}}']) for key in ("loaded", "failed")}
    p99 = 1e3 * float(np.quantile(load.seconds, 0.99))
    return {"requests": len(load.seconds), "statuses": load.statuses, "reloads": counts, "p99_ms": p99}


def memory(folder: Path, run: bn.Run, requests: int) -> dict[str, Any]:
    """Resident memory of the server after every tenth of the requests, of every kind, by eight clients."""
    with served(folder) as (_, port):
        load, sizes, asked = Load(port, mixed(run)), [], 0
        for _ in range(10):
            asked += requests // 10
            asyncio.run(load.run(8, lambda goal=asked: len(load.seconds) >= goal))  # type: ignore[misc]
            sizes.append([len(load.seconds), float(measures(port)["process_resident_memory_bytes"]) / 2**20])
    return {"requests": len(load.seconds), "statuses": load.statuses, "mebibytes": sizes}


def measures(port: int) -> dict[str, str]:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--requests", type=int, default=100_000)
    asked = parser.parse_args()
    found: dict[str, Any] = {"settings": vars(asked), "catalogues": []}

    def keep(what: str) -> None:
        print(f"{what}; wrote {write_result(__file__, found)}", flush=True)

    with tempfile.TemporaryDirectory() as home:
        run = small()
        for name, model in (("ml-1m", run), (f"{asked.items:,} items", None)):
            of = large(run, asked.items) if model is None else model
            started = time.perf_counter()
            folder = of.export(Path(home) / name, index="usearch")
            index = bn.load_export(folder).config["index"]
            train = of.split.train
            line: dict[str, Any] = {
                "catalogue": name,
                "users": train.n_users,
                "items": train.n_items,
                "export_seconds": time.perf_counter() - started,
                "recall": index["recall"],
                "served": {},
            }
            found["catalogues"].append(line)
            for search, options in (("exact", ["--exact"]), ("index", [])):
                with served(folder, *options) as (_, port):
                    line["served"][search] = [throughput(port, of, clients, asked.seconds) for clients in CLIENTS]
                    line["served"][search].append(
                        {"mebibytes": float(measures(port)["process_resident_memory_bytes"]) / 2**20}
                    )
                keep(f"{name}, {search}: {line['served'][search]}")
        found["reload"] = reloads(Path(home) / "ml-1m", run, 3 * asked.seconds)
        keep(f"reload: {found['reload']}")
        found["memory"] = memory(Path(home) / "ml-1m", run, asked.requests)
        keep(f"memory: {found['memory']}")


if __name__ == "__main__":
    main()
