"""The names of the files of a run; :mod:`bayesneg.runs.folder` says what is in them."""

from __future__ import annotations

HEAD, EPOCHS, METRICS, PER_USER = "run.json", "epochs.jsonl", "metrics.json", "per_user.parquet"
RUN_FILE, TRACKED = "run.toml", "tracking.json"
WEIGHTS, CHECKPOINT = "weights.safetensors", "checkpoint.safetensors"
PREVIOUS = "checkpoint.previous.safetensors"
TRAINED, MANIFEST = "trained.safetensors", "manifest.json"
PARQUETS = ("users.parquet", "items.parquet", "split.parquet")
LISTED = (HEAD, *PARQUETS, EPOCHS, PER_USER, WEIGHTS, TRAINED, METRICS)  # in the manifest
WRITTEN = (*LISTED, RUN_FILE, TRACKED, CHECKPOINT, PREVIOUS, MANIFEST)
WAY_OUT = "copy the run again from where it is whole, or train it again"
