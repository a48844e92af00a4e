"""What every test may ask for."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from browser import Browser, chromium

# the tests run on every core already; threads of torch and BLAS on top would wait for each other
os.environ.setdefault("OMP_NUM_THREADS", "1")

# a shell starts what it runs in the background deaf to Ctrl-C; the tests of interrupting need it
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Two workers start at the front and in the middle, near "report". One compiles the kernels of training and of torch,
# which share what they inline; the other first does without, and then finds them on disk. Short tests come last.
ORDER = (
    "tests/kernels/", "tests/models_torch/", "tests/torch_loops/", "tests/contracts/", "tests/linear/", "tests/cli/",
    "tests/benchmarks/", "tests/report/", "tests/data/", "tests/real/", "tests/test_docs.py", "tests/reproduction/",
    "tests/experiments/", "tests/test_architecture.py",
)  # fmt: skip


@pytest.fixture
def real_data() -> Path:
    """The folder of real datasets, which are never part of the repository."""
    folder = os.environ.get("BAYESNEG_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("BAYESNEG_DATA names no folder of real datasets")
    return Path(folder)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One headless Chromium for all tests of a worker; without one the test is skipped."""
    program = chromium()
    if program is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    with Browser(tmp_path_factory.mktemp("browser"), program) as opened:
        yield opened


@pytest.fixture
def nothing_waits() -> Callable[[], AbstractContextManager[None]]:
    """A context in which an operation that waits for the GPU is an error."""
    import torch

    @contextmanager
    def watched() -> Iterator[None]:
        torch.cuda.synchronize()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Synchronization debug mode is a prototype")
            torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")

    return watched


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """An order for two workers; tests marked ``gpu`` are skipped, with the reason, where torch sees no GPU."""
    items.sort(key=lambda item: next((n for n, part in enumerate(ORDER) if part in item.nodeid), len(ORDER)))
    if any("gpu" in item.keywords for item in items) and not _sees_gpu():
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="torch sees no CUDA GPU"))


def _sees_gpu() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """A test module that cannot be imported fails; ``--doctest-ignore-import-errors``, for ``src``, would skip it."""
    report = yield
    if report.skipped and "unable to import module" in str(report.longrepr) and "test" in collector.path.name:
        report.outcome, report.longrepr = "failed", f"{collector.path} cannot be imported"
    return report
