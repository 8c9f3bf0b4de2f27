"""Names of parameters and modules as the user knows them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import torch


class Names:
    """Names from `named_parameters()` and `named_modules()` of the root modules, in the order in which they are seen."""

    def __init__(self) -> None:
        self._roots: dict[int, weakref.ref[torch.nn.Module]] = {}
        self._parameters: dict[int, tuple[weakref.ref[torch.Tensor], str]] = {}
        self._modules: dict[int, tuple[weakref.ref[torch.nn.Module], str]] = {}
        self._taken: set[str] = set()

    def know(self, root: torch.nn.Module) -> bool:
        """Learn the names of a root module; returns whether it is new."""
        seen = self._roots.get(id(root))
        if seen is not None and seen() is root:
            return False
        self._roots[id(root)] = weakref.ref(root)
        self.refresh(root)
        return True

    def refresh(self, root: torch.nn.Module) -> None:
        """Learn the names again (layers may have been added or replaced)."""
        label = type(root).__name__
        for path, module in root.named_modules():
            self._modules.setdefault(id(module), (weakref.ref(module), path or label))
        for name, p in root.named_parameters():
            known = self._parameters.get(id(p))
            if known is not None and known[0]() is p:
                continue
            if name in self._taken:
                name = f"{label}.{name}"
            self._taken.add(name)
            self._parameters[id(p)] = (weakref.ref(p), name)

    def roots(self) -> Iterator[torch.nn.Module]:
        """The root modules still alive."""
        for ref in list(self._roots.values()):
            root = ref()
            if root is not None:
                yield root

    def parameter(self, p: torch.Tensor) -> str | None:
        """The parameter's name, None where no root module has it."""
        known = self._parameters.get(id(p))
        return known[1] if known is not None and known[0]() is p else None

    def module(self, module: torch.nn.Module) -> str:
        """The module's path; the class name where no root module has it."""
        known = self._modules.get(id(module))
        return known[1] if known is not None and known[0]() is module else type(module).__name__

    def parameters(self) -> dict[int, str]:
        """Names by `id`, of the parameters still alive."""
        return {key: name for key, (ref, name) in self._parameters.items() if ref() is not None}


def module_of(parameter: str) -> str:
    """`net.2.weight` → `net.2`."""
    return parameter.rpartition(".")[0]
