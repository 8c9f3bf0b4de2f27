"""Writing the dump of a failing step; `bundle.py` tells what is in it and repeats it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import torch

from osler.core.finding import Finding
from osler.core.jsonable import dumps
from osler.training import private
from osler.training.bundle import FORMAT, MAX_OPERATIONS, WORDS, BundleError
from osler.training.deep import DeepMode, Op
from osler.training.environment import facts
from osler.training.naming import Names
from osler.training.replay import Replayed
from osler.training.tape import Segment, tensors_in


class BundleWriter:
    """Listens to a replay and writes down what it ran."""

    def __init__(self, segment: Segment, names: Names, max_mb: float) -> None:
        self._segment = segment
        self._names = names
        self._max_mb = max_mb
        self._max_bytes = int(max_mb * (1 << 20))
        self._storages: dict[int, int] = {}
        self._leaves: dict[int, tuple[torch.Tensor, str]] = {}
        self._bytes = 0
        self._ops: list[dict[str, Any]] = []
        self._rng: dict[int, int] = {}
        self._alive: list[torch.Tensor] = []
        self._roles: dict[int, str] = {}
        self.gave_up: str | None = None

    def attach(self, deep: DeepMode) -> None:
        """Listen to the operations of a replay."""
        self._deep = deep
        deep.before_each(self._before)
        deep.listeners.append(self._after)
        for name, tensor in self._known_tensors():
            if tensor.layout == torch.strided:
                self._roles.setdefault(private.storage_key(tensor), name)

    def _known_tensors(self) -> list[tuple[str, torch.Tensor]]:
        out: list[tuple[str, torch.Tensor]] = []
        for entry in self._segment.entries:
            if entry.root:
                module = private.uncompiled(entry.fn)
                out += [(f"parameter {n}", p) for n, p in module.named_parameters()]
                out += [(f"buffer {n}", b) for n, b in module.named_buffers()]
            for key, value in [*((str(i), v) for i, v in enumerate(entry.args)), *entry.kwargs.items()]:
                out += [(f"argument {key} of {entry.name}", t) for t in tensors_in(value)]
        return out

    def _before(self, func: Any, args: Any, kwargs: Any) -> None:
        if self.gave_up is None:
            try:
                self._pending = (self._encode(list(args)), {k: self._encode(v) for k, v in kwargs.items()})
            except BundleError as error:
                self._give_up(str(error))

    def _after(self, func: Any, args: Any, kwargs: Any, output: Any, op: Op) -> None:
        self._record(func, output, op)

    def _give_up(self, why: str) -> None:
        """The step cannot be repeated from a bundle: let go of what has been copied for it."""
        self.gave_up = why
        self._ops.clear()
        self._leaves.clear()
        self._alive.clear()

    def _record(self, func: Any, output: Any, op: Op) -> None:
        if self.gave_up is not None:
            return
        if len(self._ops) >= MAX_OPERATIONS:
            self._give_up(f"the step has more than {MAX_OPERATIONS} operations")
            return
        made = [t for t in private.leaves(output) if isinstance(t, torch.Tensor)]
        results = []
        for t in made:
            self._alive.append(t.detach())
            if t.layout != torch.strided:
                self._give_up("the step makes sparse tensors")
                return
            results.append(self._storages.setdefault(private.storage_key(t), len(self._storages)))
        entry_rng = None
        if op.entry is not None and op.entry.rng is not None and id(op.entry) not in self._rng:
            self._rng[id(op.entry)] = len(self._rng)
            entry_rng = self._rng[id(op.entry)]
            self._leaves[-1 - entry_rng] = (op.entry.rng.cpu, f"rng.{entry_rng}")
        record: dict[str, Any] = {
            "op": private.overload_name(func),
            "args": self._pending[0],
            "kwargs": self._pending[1],
            "out": results,
            "backward": op.backward,
        }
        if entry_rng is not None:
            record["rng"] = entry_rng
        if op.line is not None or (op.entry is not None and op.entry.line is not None):
            record["line"] = list(op.line or op.entry.line)  # type: ignore[union-attr, arg-type]
        for key, value in (("module", op.module), ("node", op.node), ("function", op.function)):
            if value is not None:
                record[key] = value
        if op.forward is not None:
            record["forward"] = op.forward.index
        if op.own:
            record["own"] = True
        record["index"] = op.index
        self._ops.append(record)

    def _encode(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, str) and value not in WORDS:
            raise BundleError(f"the step has the word {value[:40]!r} among its arguments")
        if value is None or isinstance(value, (bool, str, int)):
            return value
        if isinstance(value, float):
            return {"f": value}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, torch.layout):
            return {"layout": str(value).removeprefix("torch.")}
        if isinstance(value, torch.memory_format):
            return {"memory_format": str(value).removeprefix("torch.")}
        if isinstance(value, (list, tuple)):
            return [self._encode(v) for v in value]
        if isinstance(value, torch.Generator):
            raise BundleError("the step uses a generator of its own")
        raise BundleError(f"the step has an argument of type {type(value).__name__}")

    def _tensor(self, t: torch.Tensor) -> dict[str, Any]:
        if t.layout != torch.strided or t.is_quantized:
            raise BundleError("the step has sparse or quantized tensors")
        if t.is_conj() or t.is_neg():
            raise BundleError("the step has lazily conjugated tensors")
        storage = t.untyped_storage()
        key = private.storage_key(t)
        if key not in self._storages:
            self._storages[key] = len(self._storages)
            self._alive.append(t.detach())
            self._bytes += storage.nbytes()
            if self._bytes > self._max_bytes:
                raise BundleError(f"the step's inputs and parameters exceed dump.max_mb ({self._max_mb:g} MiB)")
            size = storage.nbytes() // t.element_size()
            whole = torch.as_strided(t.detach(), (size,), (1,), 0)
            self._leaves[self._storages[key]] = (whole.clone(), self._roles.get(key, ""))
        return {
            "s": self._storages[key],
            "o": t.storage_offset(),
            "z": list(t.shape),
            "t": list(t.stride()),
            "d": str(t.dtype).removeprefix("torch."),
        }

    def write(self, folder: Path, finding: Finding, result: Replayed, step: int) -> Path | None:
        """Write the bundle; returns its folder.

        Raises:
            OSError: the disk refuses.
        """
        from safetensors.torch import save

        path = folder / f"step-{step}-{os.getpid()}-{time.time_ns() % 1_000_000:06d}"
        path.mkdir(mode=0o700, parents=True)
        tensors: dict[str, torch.Tensor] = {}
        roles: dict[str, str] = {}
        if self.gave_up is None:
            for place, (tensor, role) in self._leaves.items():
                name = f"s{place}" if place >= 0 else role
                tensors[name] = tensor.contiguous().cpu()
                if role and place >= 0:
                    roles[name] = role
        else:
            # Too large or too exotic to repeat: the parameters go, and of the inputs what the limit has room for stays,
            # because a person would look at those first.
            room = self._max_bytes
            for name, t in self._known_tensors():
                size = t.numel() * t.element_size()
                if name.startswith("argument") and t.layout == torch.strided and size <= room:
                    room -= size
                    tensors.setdefault(name.replace(" ", "_"), t.detach().contiguous().cpu().clone())
        for i, value in enumerate(result.segment.losses):
            tensors[f"loss.{i}"] = value.contiguous().cpu().clone()
        content = {
            "format": FORMAT,
            "torch": torch.__version__,
            "environment": facts(),
            "step": step,
            "finding": finding.to_dict(),
            "operations": self._ops if self.gave_up is None else [],
            "gave_up": self.gave_up,
            "roles": roles,
            "losses": len(result.segment.losses),
            "targets": [m.index for m in self._targets(result)],
            "threads": torch.get_num_threads(),
        }
        _write(path / "tensors.safetensors", save(tensors))
        _write(path / "step.json", dumps(content).encode("ascii"))
        return path

    def _targets(self, result: Replayed) -> list[Op]:
        if result.origin is None:
            return []
        return [result.origin.spread or result.origin.op]


def _write(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
