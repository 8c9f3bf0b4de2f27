"""Facts about this process that change what a training computes."""

from __future__ import annotations

import os
import sys

import torch


def facts() -> dict[str, object]:
    """torch build, devices, seeds, threads, determinism; strings and numbers only."""
    out: dict[str, object] = {
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "cuda": torch.version.cuda,
        "threads": torch.get_num_threads(),
        "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "seed": torch.initial_seed(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "mkldnn": torch.backends.mkldnn.is_available(),
        "rank": os.environ.get("RANK"),
        "world_size": os.environ.get("WORLD_SIZE"),
    }
    if "numpy" in sys.modules:
        out["numpy"] = sys.modules["numpy"].__version__
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        out["devices"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return out
