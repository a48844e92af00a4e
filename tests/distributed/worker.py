"""One of several processes: ``torchrun … worker.py FOLDER``; writes what it found to FOLDER."""

from __future__ import annotations

import json
import os
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from scenarios import (
    EPOCHS,
    KEPT,
    KEYED,
    POOLS,
    RESUMED,
    SAMPLERS,
    STILL,
    TRAINED,
    Recorded,
    few_items,
    grown,
    mf,
    refusals,
    tied,
    world,
)

import bayesneg as bn
from bayesneg.cli.training.processes import load_in_parts
from bayesneg.distributed.group import begin, end
from bayesneg.distributed.sharding import order
from bayesneg.training.processes import begun


def choices(split: bn.Split, folder: Path, rank: int, samplers: dict[str, bn.NegativeSampler]) -> None:
    """Every choice with vectors that do not move."""
    for name, sampler in samplers.items():
        recorded = Recorded()
        model = mf(learning_rate=STILL, penalty="batch", regularization=0.0)
        bn.fit(model, split, sampler, epochs=EPOCHS.get(name, 1), select="last", progress=False)
        recorded.undo()
        np.save(folder / f"choices {name} {rank}.npy", recorded.table())


def trained(split: bn.Split, folder: Path, rank: int) -> None:
    for name, (model, sampler, loss) in TRAINED.items():
        run = bn.fit(model, split, sampler, loss=loss, epochs=3, progress=False, out=folder / "runs" / name)
        frames = list(run.recommend_in_chunks(k=5))
        if name == "bns":
            for place, frame in enumerate(frames):
                frame.write_parquet(folder / f"recommended {rank} {place}.parquet")
        found = {"final": dict(run.record.final), "epochs": [dict(line) for line in run.record.epochs]}
        (folder / f"trained {name} {rank}.json").write_text(json.dumps(found))


def started(folder: Path, rank: int) -> None:
    run = bn.load_run(folder.parent / "earlier")
    out = folder / "runs" / "started"
    # one user is evaluated: all processes but one have none
    bn.fit(mf(), grown(), bn.RNS(), start=run, epochs=2, progress=False, evaluate_users=1, out=out)
    for place, frame in enumerate(load_in_parts(out).recommend_in_chunks(k=3)):
        frame.write_parquet(folder / f"started {rank} {place}.parquet")


def keyed(split: bn.Split, folder: Path, rank: int) -> None:
    """The order of data that is too large for each process to hold it."""
    order.MOST_HELD, before = 100, order.MOST_HELD
    choices(split, folder, rank, {f"keyed {name}": sampler for name, sampler in KEYED.items()})
    bn.fit(mf(), split, bn.BNS(cdf="exact"), epochs=3, progress=False, out=folder / "runs" / "keyed")
    order.MOST_HELD = before


def refused(split: bn.Split, folder: Path, rank: int) -> None:
    found = {}
    for word, (model, data, sampler) in refusals(split).items():
        try:
            bn.fit(model, data, sampler, epochs=1, progress=False)
        except bn.BayesnegError as error:
            found[word] = str(error)
    try:
        bn.fit(mf(), few_items(), bn.RNS(), epochs=1, progress=False)
    except bn.BayesnegError as error:
        found["too few"] = str(error)
    last = dist.get_world_size() - 1
    differing = {
        "seed": lambda: bn.fit(mf(), split, bn.RNS(), seed=int(rank == last), epochs=1, progress=False),
        "patience": lambda: bn.fit(mf(), split, bn.RNS(), patience=1 + (rank == last), epochs=1, progress=False),
        "settings": lambda: bn.fit(mf(dim=4 if rank == last else 8), split, bn.RNS(), epochs=1, progress=False),
        "data": lambda: bn.fit(
            mf(), bn.split(bn.synthetic(60, 150, seed=3), seed=int(rank == last)), bn.RNS(), epochs=1, progress=False
        ),
    }
    for word, fit in differing.items():
        try:
            fit()
        except bn.BayesnegError as error:
            found[word] = str(error)
    (folder / f"refused {rank}.json").write_text(json.dumps(found))


def resumed(split: bn.Split, folder: Path, rank: int, size: int) -> None:
    """Four processes train four epochs; two go on to six, and one to eight."""
    for name, (model, sampler, select) in RESUMED.items():
        target, epochs = folder / f"resumed {name} {size}", {4: 4, 2: 6, 1: 8}[size]
        before = folder / f"resumed {name} {2 * size}"
        if rank == 0 and before.exists():
            shutil.copytree(before, target)
        dist.barrier()
        bn.fit(model, split, sampler, epochs=epochs, progress=False, select=select, out=target, resume=True)


def sizes(split: bn.Split, folder: Path, rank: int) -> None:
    """What a process holds and what it has sent, in an epoch of RNS, and of samplers that keep something."""
    from bayesneg.interfaces import BPR_LOSS
    from bayesneg.seeding import stream

    model = mf(learning_rate=STILL, penalty="batch", regularization=0.0)
    group, learner = begun(model, split, bn.RNS(), BPR_LOSS, split.train, stream(0, "init"), None)
    users, items = learner.vectors.user_rows.rows.numpy().copy(), learner.vectors.item_rows.rows.numpy().copy()
    np.savez(folder / f"initial {rank}.npz", users=users, items=items)
    pairs = stream(0, "order", 1).permutation(len(split.train))
    group.sent.clear()
    list(learner.train_epoch(bn.RNS(), epoch=1, order=pairs, rng=stream(0, "sampler", 1)))
    ranges = {"users": learner.vectors.user_range, "items": learner.vectors.item_range}
    found = {"sent": dict(group.sent), "ranges": ranges, "kept": {}}
    for name in KEPT:
        sampler = SAMPLERS[name].prepare(split.train, rng=stream(0, "sampler"))
        group.sent.clear()
        list(learner.train_epoch(sampler, epoch=1, order=pairs, rng=stream(0, "sampler", 1)))
        sampler.end_epoch(1, learner)
        found[name] = dict(group.sent)
        found["kept"] |= {f"{name} {key}": array.shape for key, array in sampler.state_dict().items()}
    (folder / f"sent {rank}.json").write_text(json.dumps(found))


def ties(folder: Path, rank: int, size: int) -> None:
    """Items at given ranks of lists with many equal scores; the first of several processes asks for none."""
    from bayesneg.distributed.choices.score_ranks import ScoreRanks
    from bayesneg.distributed.counting import Counting
    from bayesneg.distributed.group import ProcessGroup
    from bayesneg.distributed.sharding.owners import Owners

    data, w, h, ranks = tied()
    group, items = ProcessGroup(torch.device("cpu")), Owners.evenly(data.n_items, size)
    counts = [data.n_users] if size == 1 else [0, *np.diff(np.linspace(0, data.n_users, size).astype(int)).tolist()]
    start, (first, last) = sum(counts[:rank]), items.range_of(rank)
    users = np.arange(start, start + counts[rank])
    (hidden,) = Counting(group, items, data).hidden([users], np.array([counts]), data)
    given = (torch.from_numpy(part) for part in (w[users], ranks[users], h[first:last]))
    found = ScoreRanks(group, items).at(*given, counts, hidden)
    np.save(folder / f"ties {rank}.npy", found.numpy())


def main() -> None:
    warnings.simplefilter("error")
    folder = Path(sys.argv[1])
    begin("cpu", 300.0)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    split, own = world(), folder / str(size)
    own.mkdir(parents=True, exist_ok=True)
    choices(split, own, rank, {**SAMPLERS, **POOLS})
    keyed(split, own, rank)
    trained(split, own, rank)
    resumed(split, folder, rank, size)
    started(own, rank)
    sizes(split, own, rank)
    ties(own, rank, size)
    if size == 4:
        refused(split, own, rank)
    end()


if __name__ == "__main__":
    main()
