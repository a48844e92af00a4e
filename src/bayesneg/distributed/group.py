"""The processes that train together: the collectives that are used, and how many bytes they send."""

from __future__ import annotations

import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from bayesneg.distributed.watch import Watch
from bayesneg.errors import BayesnegError, InputError, file_sentence

Found = TypeVar("Found")
LEAST_TORCH = (2, 9)
LATER = 2.0  # seconds after which torch, which has its own timeout, has ended


class ProcessGroup:
    """The group of this process, as ``torch.distributed`` was initialised.

    Args:
        device: Where tensors are: a GPU with NCCL, else the CPU.

    ``sent`` counts the bytes of payload that this process has sent to others, by what they are.
    """

    def __init__(self, device: torch.device) -> None:
        check_torch()
        self.rank, self.size, self.device = dist.get_rank(), dist.get_world_size(), device
        self.sent: Counter[str] = Counter()

    def exchange(self, given: Tensor, to: Sequence[int], of: Sequence[int], what: str) -> Tensor:
        """Send ``to[r]`` rows to each process r, in order, and receive ``of[r]`` from it; what was received, in order.

        Args:
            given: The rows to send.
            to: How many of them each process gets.
            of: How many each process sends here.
            what: The name under which bytes are counted.
        """
        if self.size == 1:
            return given
        received = given.new_empty((sum(of), *given.shape[1:]))
        dist.all_to_all_single(received, given.contiguous(), list(of), list(to))
        each = given.element_size() * given[:1].numel() if len(given) else 0
        self.sent[what] += each * (sum(to) - to[self.rank])
        return received

    def exchanged_counts(self, counts: Tensor) -> Tensor:
        """Row r of ``counts`` (size, …) goes to process r; the rows that others have sent here."""
        if self.size == 1:
            return counts
        ones = [1] * self.size
        return self.exchange(counts, ones, ones, "counts")

    def gather(self, given: Tensor, counts: Sequence[int], what: str) -> Tensor:
        """The rows of all processes, in the order of ranks; process r has ``counts[r]``."""
        if self.size == 1:
            return given
        room = max(counts)
        padded = given.new_zeros((room, *given.shape[1:]))
        padded[: len(given)] = given
        parts = [torch.empty_like(padded) for _ in range(self.size)]
        dist.all_gather(parts, padded)
        self.sent[what] += padded.element_size() * padded.numel() * (self.size - 1)
        return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])

    def sum(self, given: Tensor, what: str = "sums") -> Tensor:
        """The sum over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(given)
            self.sent[what] += 2 * given.element_size() * given.numel() * (self.size - 1) // self.size
        return given

    def most(self, value: int) -> int:
        """The largest value of all processes."""
        if self.size == 1:
            return value
        found = torch.tensor(value, dtype=torch.int64, device=self.device)
        dist.all_reduce(found, op=dist.ReduceOp.MAX)
        return int(found)

    def objects(self, given: Any) -> list[Any]:
        """A small value of each process, on all of them."""
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, given)
        return found

    def wait(self) -> None:
        """Wait for all processes; fails, as every collective, when one does not come within the group's timeout."""
        if self.size > 1:
            dist.barrier()  # not monitored_barrier, whose timeout is 30 minutes whatever the group's is


def check_torch() -> None:
    """An error where torch is too old for several processes; one process trains with older ones."""
    found = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    if found < LEAST_TORCH:
        raise InputError(
            f"several processes need torch {'.'.join(map(str, LEAST_TORCH))} or newer, which writes checkpoints of all "
            f"as safetensors; this is {torch.__version__}: run pip install --upgrade torch, or train in one process"
        )


def begin(device: str, timeout: float) -> None:
    """Initialise the group of a process that ``torchrun`` has started.

    Args:
        device: ``"cuda"``, ``"cpu"`` or ``"auto"``.
        timeout: Seconds after which a process that waits for others gives up.
    """
    check_torch()
    on_gpu = device == "cuda" or (device == "auto" and torch.cuda.is_available())
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if on_gpu:
        if local >= torch.cuda.device_count():
            raise InputError(
                f"process {local} of this host has no GPU: torch sees {torch.cuda.device_count()}; start as many "
                "processes as GPUs (--nproc-per-node), or leave them out (--device cpu)"
            )
        torch.cuda.set_device(local)
    if not timeout > 0:
        raise InputError(f"--ranks-timeout must be above 0 seconds, got {timeout:g}")
    limit = timedelta(seconds=timeout)
    try:
        store, rank, size = _met(limit)
        # processes that torchrun has started again must not find the addresses of those before
        attempt = PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
        backend = "nccl" if on_gpu else "gloo"
        # NCCL ends a process that waits too long by a signal; the watch speaks before
        patience = 2 * limit if on_gpu else limit
        dist.init_process_group(backend, store=attempt, rank=rank, world_size=size, timeout=patience)
    except (RuntimeError, ValueError) as error:
        where = f"{os.environ.get('MASTER_ADDR', '')}:{os.environ.get('MASTER_PORT', '')}"
        said = str(error).strip().splitlines()[0][:200]
        raise InputError(
            f"the processes cannot meet at {where} ({said}); name a free port (torchrun --master-port) and start as "
            "many processes as WORLD_SIZE says"
        ) from error


def watched(timeout: float, say: Callable[[str], None]) -> Watch:
    """A watch over the processes of the group; :class:`~bayesneg.distributed.watch.Watch` has the arguments."""
    group, store = dist.distributed_c10d._get_default_group(), dist.distributed_c10d._get_default_store()
    begun = group._get_sequence_number_for_group  # type: ignore[attr-defined]
    return Watch(begun, store, rank=dist.get_rank(), size=dist.get_world_size(), timeout=timeout, say=say)


def _met(limit: timedelta) -> tuple[Any, int, int]:
    """The store of the group, the rank and their number.

    In a thread, since torch waits without end for one who listens on the port and does not answer.
    """
    found: list[Any] = []

    def meet() -> None:
        try:
            found.append(next(rendezvous("env://", timeout=limit)))
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=meet, daemon=True)
    thread.start()
    thread.join(limit.total_seconds() + LATER)
    answer = found[0] if found else RuntimeError("whoever listens there does not answer")
    if isinstance(answer, Exception):
        raise answer
    return cast("tuple[Any, int, int]", answer)


def own_device() -> torch.device:
    """Where the tensors of this process are: its GPU with NCCL, else the CPU."""
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")


def end() -> None:
    """Leave the group."""
    if dist.is_initialized():
        dist.destroy_process_group()


def agreed(wrong: str) -> None:
    """An error, on every process, if one of them has found something wrong.

    Args:
        wrong: What this process has found; empty for nothing.
    """
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, wrong)
    for rank, text in enumerate(found):
        if text:
            raise InputError(text if rank == 0 else f"rank {rank}: {text}")


def raised_by_all(work: Callable[[], Found]) -> Found:
    """What ``work`` gives in this process; an error of one process is raised by all, with its rank.

    Args:
        work: What every process does, such as writing its part of a file; no collectives.
    """
    found: Any = None
    wrong = ""
    try:
        found = work()
    except (BayesnegError, OSError) as error:
        wrong = sentence(error)
    agreed(wrong)
    return cast("Found", found)


def sentence(error: BayesnegError | OSError) -> str:
    """What a process tells the others of its error."""
    return file_sentence(error) if isinstance(error, OSError) and error.filename is not None else str(error)


def said_by_first(text: str, patience: float) -> bool:
    """Whether rank 0 says this error; rank 0 tells the others that it does.

    Args:
        text: The error of this process.
        patience: Seconds to wait for rank 0.
    """
    return _posted("error", text, [0], patience).get(0) == text


def silent(patience: float) -> list[int]:
    """The ranks that do not say, as this process does, that they wait for others.

    Args:
        patience: Seconds to wait for them.
    """
    everybody = list(range(dist.get_world_size()))
    heard = _posted("waiting", "yes", everybody, patience)
    return [rank for rank in everybody if rank not in heard]


def _posted(key: str, text: str, ranks: Sequence[int], patience: float) -> dict[int, str]:
    """Post a text for the others, by the store of the group, and what these ranks have posted in time."""
    store = dist.distributed_c10d._get_default_store()
    found: dict[int, str] = {}
    try:
        store.set(f"{key}/{dist.get_rank()}", text)
        until = time.monotonic() + patience
        while len(found) < len(ranks) and time.monotonic() < until:
            for rank in ranks:
                if rank not in found and store.check([f"{key}/{rank}"]):
                    found[rank] = store.get(f"{key}/{rank}").decode()
            time.sleep(0.02)
    except RuntimeError:  # the store is gone with the process that kept it
        pass
    return found


def check_same(group: ProcessGroup, facts: dict[str, Any]) -> None:
    """An error, on every process, unless all have the same facts.

    Args:
        group: The processes.
        facts: What must be equal, by its name in the error.
    """
    found = group.objects(facts)
    for rank, other in enumerate(found):
        for name in sorted({*found[0], *other}):
            if found[0].get(name) != other.get(name):
                raise InputError(
                    f"the processes must train the same: {name} is {other.get(name)} on rank {rank} and "
                    f"{found[0].get(name)} on rank 0; start all of them with the same data, settings and versions"
                )
