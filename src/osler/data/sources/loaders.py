"""Data sets and loaders of PyTorch, and whatever looks like them, without importing torch."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from osler.data.sources.samples import Batch, Batches, fields_of, made


def is_loader(data: object) -> bool:
    """Whether it gives batches of a data set: it has `dataset` and `collate_fn`."""
    return hasattr(data, "dataset") and hasattr(data, "collate_fn") and hasattr(data, "__iter__")


def is_dataset(data: object) -> bool:
    """Whether it gives samples by number, or is one of torch's that give them one after another."""
    if isinstance(data, (list, tuple, Mapping, np.ndarray, str, bytes)) or type(data).__module__.partition(".")[0] in (
        "pandas", "polars", "pyarrow", "narwhals", "osler",
    ):  # fmt: skip
        return False
    if hasattr(data, "shape") or hasattr(data, "read"):
        return False
    torchs = any(base.__module__.startswith("torch.utils.data") for base in type(data).__mro__)
    return torchs or (hasattr(data, "__getitem__") and hasattr(data, "__len__"))


def _iterable(dataset: Any) -> bool:
    """Whether it gives samples one after another: torch's IterableDataset has a `__getitem__` that only raises."""
    return not hasattr(dataset, "__getitem__") or any(b.__name__ == "IterableDataset" for b in type(dataset).__mro__)


def from_loader(loader: Any) -> Batches:
    """The batches of a loader, made in this process: its samples first, then what its collate function makes of them.

    Torch's random state is as it was before, once the batches have been looked at.
    """
    name = type(loader).__name__
    sampler = getattr(loader, "batch_sampler", None)
    size = getattr(loader, "batch_size", None)
    if _iterable(loader.dataset) and size:
        return Batches(name, _streamed(iter(loader.dataset), size, loader.collate_fn), collated=True)
    if sampler is None or not hasattr(loader.dataset, "__getitem__"):
        return Batches(name, _iterated(loader), collated=True)
    try:
        total: int | None = len(sampler)
    except (TypeError, NotImplementedError):
        total = None
    return Batches(name, _sampled(loader.dataset, sampler, loader.collate_fn), collated=True, total=total)


def from_dataset(dataset: Any, batch_size: int | None, collate_fn: Any, default: int) -> Batches:
    """The batches that a data set would give in its own order."""
    name = type(dataset).__name__
    collate = collate_fn or getattr(dataset, "collate_fn", None)
    size = batch_size or default
    if _iterable(dataset):
        return Batches(name, _streamed(iter(dataset), size, collate), collated=collate is not None)
    numbers = [list(range(i, min(i + size, len(dataset)))) for i in range(0, len(dataset), size)]
    assumed = "" if batch_size else f"{size} at a time"
    return Batches(
        name, _sampled(dataset, numbers, collate), collated=collate is not None, total=len(numbers), assumed=assumed
    )


def _random_state() -> AbstractContextManager[Any]:
    torch = sys.modules.get("torch")
    return torch.random.fork_rng(devices=[]) if torch is not None else nullcontext()


def _sampled(dataset: Any, sampler: Any, collate: Any) -> Iterator[Batch]:
    with _random_state():
        numbers = list(itertools.islice(iter(sampler), 100_000))
    for index, batch in enumerate(numbers):
        positions = [int(i) for i in batch]
        with _random_state():
            samples = [dataset[i] for i in positions]
        yield _collated(index, samples, collate, positions[0] if positions else 0, positions)


def _streamed(samples: Iterator[object], size: int, collate: Any) -> Iterator[Batch]:
    first = 0
    for index in itertools.count():
        taken = list(itertools.islice(samples, size))
        if not taken:
            return
        yield _collated(index, taken, collate, first, None)
        first += len(taken)


def _collated(index: int, samples: list[Any], collate: Any, first: int, positions: list[int] | None) -> Batch:
    fields = fields_of(samples)
    if collate is None:
        return Batch(index, fields, first, positions)
    try:
        result = collate(samples)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        return Batch(index, fields, first, positions, error=_told(error))
    out = next(made(iter([result]), loader=True))
    lists = {name: shapes for name, shapes in out.fields.items() if not out.stacked}
    return Batch(index, lists if not out.stacked else out.fields, first, positions, stacked=out.stacked)


def _told(error: Exception) -> str:
    """The error's type, and its text where that speaks of shapes: others may quote the user's data."""
    text = str(error).partition("\n")[0][:160]
    shapes = any(words in text for words in ("stack expects", "same shape", "inhomogeneous", "equal size"))
    return f"{type(error).__name__}: {text}" if shapes else type(error).__name__


def _iterated(loader: Any) -> Iterator[Batch]:
    batches = iter(loader)
    index = first = 0
    while True:
        try:
            with _random_state():
                item = next(batches)
        except StopIteration:
            return
        except (RuntimeError, ValueError, TypeError) as error:
            yield Batch(index, {}, first, error=_told(error))
            return
        batch = next(made(iter([item]), loader=True))
        batch.index, batch.first = index, first
        first += max((len(v) for v in batch.fields.values()), default=0)
        index += 1
        yield batch
