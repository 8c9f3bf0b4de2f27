"""Running the user's modules once more without leaving a trace: generators, buffers, attributes, output."""

from __future__ import annotations

import contextlib
import io
import random
import sys
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from osler.training.tape import rng_now, rng_set

_CONTAINERS = (list, dict, set, deque)


class _Attributes:
    """The attributes of modules, containers one level deep."""

    def __init__(self, modules: Iterable[torch.nn.Module]) -> None:
        self._saved = [(m, dict(vars(m)), self._contents(m)) for m in modules]

    @staticmethod
    def _contents(module: torch.nn.Module) -> dict[str, Any]:
        return {k: v.copy() for k, v in vars(module).items() if type(v) in _CONTAINERS and not k.startswith("_")}

    def restore(self) -> None:
        """Put them back, touching only what changed."""
        for module, attributes, contents in self._saved:
            now = vars(module)
            for key in [k for k in now if k not in attributes]:
                del now[key]
            for key, value in attributes.items():
                if now.get(key) is not value:
                    now[key] = value
            for key, copy in contents.items():
                value = attributes[key]
                if len(value) != len(copy) or any(a is not b for a, b in zip(value, copy)):
                    value.clear()
                    value.extend(copy) if isinstance(value, (list, deque)) else value.update(copy)


class _Buffers:
    """The values of modules' buffers."""

    def __init__(self, modules: Iterable[torch.nn.Module]) -> None:
        buffers = {id(b): b for m in modules for b in m.buffers(recurse=False)}
        self._saved = [(b, b.detach().clone()) for b in buffers.values() if not b.is_inference()]

    def restore(self) -> None:
        """Put them back. Version counters do not tell which have changed: batch norm writes its statistics without counting.
        `.data` leaves the counters as they are, for graphs still alive."""
        for buffer, value in self._saved:
            buffer.data.copy_(value)


@contextlib.contextmanager
def undisturbed(roots: Iterable[torch.nn.Module]) -> Iterator[None]:
    """Run what is inside and put everything back that it may have changed in these modules and in the process."""
    modules = list({id(m): m for root in roots for m in root.modules()}.values())
    attributes, buffers = _Attributes(modules), _Buffers(modules)
    torch_state, python_state = rng_now(), random.getstate()
    numpy: Any = sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy is not None and hasattr(numpy, "random") else None
    stdout, stderr = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.stdout, sys.stderr = stdout, stderr
        rng_set(torch_state)
        random.setstate(python_state)
        if numpy_state is not None:
            numpy.random.set_state(numpy_state)
        with torch.no_grad():
            buffers.restore()
        attributes.restore()
