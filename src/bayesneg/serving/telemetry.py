"""Counts and durations of requests, in the text format of Prometheus."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Final

from bayesneg import __version__

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)  # seconds
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
STATUS: Final = Path("/proc/self/status")  # where the system has it


class Telemetry:
    """What ``/metrics`` shows; counted from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._durations: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self.in_flight = 0
        self.reloads: Counter[str] = Counter({"loaded": 0, "failed": 0})

    def start(self) -> float:
        """Count a request that begins; gives its start."""
        with self._lock:
            self.in_flight += 1
        return time.perf_counter()

    def end(self, path: str, status: int, started: float) -> None:
        """Count a request that ends."""
        seconds = time.perf_counter() - started
        with self._lock:
            self.in_flight -= 1
            self._requests[path, status] += 1
            self._durations[path][bisect_left(BUCKETS, seconds)] += 1
            self._seconds[path] += seconds

    def reloaded(self, outcome: str) -> None:
        """Count a reload, ``loaded`` or ``failed``."""
        with self._lock:
            self.reloads[outcome] += 1

    def text(self, model: Mapping[str, str], loaded_at: float) -> str:
        """All measures, with what is said of the model as labels."""
        with self._lock:
            return "\n".join(self._lines(model, loaded_at)) + "\n"

    def _lines(self, model: Mapping[str, str], loaded_at: float) -> Iterator[str]:
        yield from _head("bayesneg_requests_total", "counter", "Requests by path and status.")
        for (path, status), count in sorted(self._requests.items()):
            yield f"bayesneg_requests_total{_labels({'path': path, 'status': str(status)})} {count}"
        yield from _head("bayesneg_request_seconds", "histogram", "Time from the request to the end of its answer.")
        for path, counts in sorted(self._durations.items()):
            total = 0
            for edge, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                total += count
                yield f"bayesneg_request_seconds_bucket{_labels({'path': path, 'le': edge})} {total}"
            yield f"bayesneg_request_seconds_sum{_labels({'path': path})} {self._seconds[path]:.6f}"
            yield f"bayesneg_request_seconds_count{_labels({'path': path})} {total}"
        yield from _head("bayesneg_requests_in_flight", "gauge", "Requests that are being answered.")
        yield f"bayesneg_requests_in_flight {self.in_flight}"
        yield from _head("bayesneg_reloads_total", "counter", "Reloads of the model by outcome.")
        for outcome, count in sorted(self.reloads.items()):
            yield f"bayesneg_reloads_total{_labels({'outcome': outcome})} {count}"
        yield from _head("bayesneg_model_info", "gauge", "The model that answers.")
        yield f"bayesneg_model_info{_labels({**model, 'version': __version__})} 1"
        yield from _head("bayesneg_model_loaded_timestamp_seconds", "gauge", "When the model was loaded.")
        yield f"bayesneg_model_loaded_timestamp_seconds {loaded_at:.3f}"
        if (memory := resident_bytes()) is not None:
            yield from _head("process_resident_memory_bytes", "gauge", "Resident memory of the server.")
            yield f"process_resident_memory_bytes {memory}"


def resident_bytes() -> int | None:
    """The resident memory of this process; None where the system does not say."""
    try:
        text = STATUS.read_text(encoding="ascii")
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS:")), None)


def _head(name: str, kind: str, text: str) -> tuple[str, str]:
    return f"# HELP {name} {text}", f"# TYPE {name} {kind}"


def _labels(values: Mapping[str, str]) -> str:
    escaped = {
        key: value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for key, value in values.items()
    }
    return "{" + ",".join(f'{key}="{value}"' for key, value in escaped.items()) + "}"
