"""Which parameters take part in the loss and which an optimizer owns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from osler.core.finding import Finding, Severity
from osler.core.frames import Line
from osler.syntax.classes import assignment_line
from osler.training.histograms import NO_GRADIENT
from osler.training.monitors.common import forward_line, listed, make, owner_of, source_of, users_class
from osler.training.naming import module_of
from osler.training.optimizers import OptimizerWatch
from osler.training.recorder import Recorder
from osler.training.trace import Trace


class OwnershipMonitor:
    """unused-parameter, parameter-not-in-optimizer, stale-optimizer-parameters, layers-not-registered."""

    detects: ClassVar[tuple[str, ...]] = (
        "unused-parameter",
        "parameter-not-in-optimizer",
        "stale-optimizer-parameters",
        "layers-not-registered",
    )

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._settled: set[int] = set()
        self._used: set[int] = set()
        self._looked_at: dict[int, int] = {}
        self._order: dict[int, tuple[int, Line | None]] = {}
        self._before: dict[int, float] = {}
        self._opaque = False

    # --- observations

    def trace(self, trace: Trace, watch: OptimizerWatch | None) -> list[Finding]:
        """Note which parameters a step used."""
        self._opaque = self._opaque or bool(trace.opaque)
        for i, ref in enumerate(trace.parameters):
            p = ref()
            if p is None:
                continue
            self._looked_at[id(p)] = self._looked_at.get(id(p), 0) + 1
            in_loss = trace.loss is None or (trace.loss[0] >> i) & 1 or not trace.loss[0]
            if (trace.used >> i) & 1 and in_loss:
                self._used.add(id(p))
        if not self._order:
            for place, (i, (line, _)) in enumerate(trace.first_lines.items()):
                p = trace.parameters[i]()
                if p is not None:
                    self._order[id(p)] = (place, line)
        if not self._before:
            owned = self._owned()
            for p in self._all_parameters():
                if id(p) not in owned:
                    self._before[id(p)] = _fingerprint(p)
        return []

    def step(self, watch: OptimizerWatch) -> list[Finding]:
        """Judge once the structure window is full."""
        if watch.steps >= self._recorder.settings.gradients.structure_window and watch.number not in self._settled:
            self._settled.add(watch.number)
            return self._judge(watch)
        return []

    def end(self, watch: OptimizerWatch) -> list[Finding]:
        """Judge a training that ended before the window was full, if it was not all too short."""
        if watch.number not in self._settled and watch.steps >= 4:
            self._settled.add(watch.number)
            return self._judge(watch)
        return []

    def not_checked(self) -> Iterator[tuple[str, str]]:
        """What could not be judged."""
        if self._opaque:
            yield "unused-parameter", "parameters used inside compiled regions are taken as used"
        for watch in self._recorder.optimizers.values():
            if watch.number not in self._settled:
                for rule in self.detects:
                    yield rule, f"{watch.label} took {watch.steps} steps; 4 are needed"

    # --- judgement

    def _owned(self) -> set[int]:
        owned = set()
        for ref, _ in list(self._recorder.born.values()):
            optimizer = ref()
            if optimizer is not None:
                owned |= {id(p) for g in optimizer.param_groups for p in g["params"]}
        for watch in self._recorder.optimizers.values():
            owned |= {id(p) for p in watch.parameters}
        return owned

    def _all_parameters(self) -> Iterator[torch.Tensor]:
        for root in self._recorder.names.roots():
            yield from root.parameters()
            for hidden in _hidden(root):
                yield from hidden.tensors

    def _judge(self, watch: OptimizerWatch) -> list[Finding]:
        names = self._recorder.names
        for root in names.roots():
            names.refresh(root)
        owned = self._owned()
        in_model = {id(p) for root in names.roots() for p in root.parameters()}
        orphans = [
            p
            for i, p in enumerate(watch.parameters)
            if id(p) not in in_model and p.requires_grad and all(row[i] == NO_GRADIENT for row in watch.rows)
        ]
        homeless = [
            (root, n, p)
            for root in names.roots()
            if root.training
            for n, p in root.named_parameters()
            if p.requires_grad and p.grad is not None and id(p) not in owned and not self._moved(p)
        ]
        findings = list(self._unregistered(watch, owned))
        if orphans and homeless:
            findings.append(self._stale(watch, orphans, homeless))
        elif homeless:
            findings.append(self._left_out(watch, homeless, owned))
        findings.extend(self._unused(watch))
        return findings

    def _moved(self, p: torch.Tensor) -> bool:
        """Whether somebody updates the parameter without an optimizer."""
        before = self._before.get(id(p))
        return before is not None and before != _fingerprint(p)

    def _stale(self, watch: OptimizerWatch, orphans: list[torch.Tensor], homeless: list[Any]) -> Finding:
        names = [self._recorder.names.parameter(p) or n for _, n, p in homeless]
        shapes = [tuple(p.shape) for _, _, p in homeless]
        alike = sum(tuple(p.shape) in shapes for p in orphans)
        return make(
            self._recorder,
            "stale-optimizer-parameters",
            f"{watch.label} owns {len(orphans)} parameters that the model no longer has, while {listed(names)} "
            f"of the model get gradients and no optimizer owns them.",
            line=watch.born,
            step=watch.steps,
            first_step=0,
            severity=Severity.ERROR,
            fix="Construct the optimizer after the last change to the model's layers (a replaced head, a deep copy, a re-initialisation).",
            evidence={"stale": len(orphans), "of": len(watch.parameters), "unowned": names[:16], "same_shape": alike},
            touches=[f"optimizer:{watch.number}", *(f"parameter:{n}" for n in names)],
            optimizer=watch.label,
            parameter=names[0],
        )

    def _left_out(self, watch: OptimizerWatch, homeless: list[Any], owned: set[int]) -> Finding:
        names = [self._recorder.names.parameter(p) or n for _, n, p in homeless]
        places = [self._order[id(p)][0] for _, _, p in homeless if id(p) in self._order]
        theirs = [place for key, (place, _) in self._order.items() if key in owned]
        # Training only what lies behind a backbone is a habit (feature extraction), its gradients a mere waste.
        upstream = bool(places and theirs and max(places) < min(theirs))
        return make(
            self._recorder,
            "parameter-not-in-optimizer",
            f"{len(names)} parameter{'s' if len(names) > 1 else ''} ({listed(names)}) get gradients and no optimizer owns them: "
            "they never change.",
            line=watch.born,
            step=watch.steps,
            first_step=0,
            severity=Severity.INFO if upstream else Severity.WARNING,
            fix="Hand them to the optimizer (model.parameters() of the whole model, or add_param_group), or set requires_grad_(False) "
            "if they are meant to stay as they are.",
            evidence={
                "parameters": names[:16],
                "count": len(names),
                "elements": sum(p.numel() for _, _, p in homeless),
            },
            touches=[*(f"parameter:{n}" for n in names), f"optimizer:{watch.number}"],
            optimizer=watch.label,
            parameter=names[0],
        )

    def _unregistered(self, watch: OptimizerWatch, owned: set[int]) -> Iterator[Finding]:
        for root in self._recorder.names.roots():
            for hidden in _hidden(root):
                learning = [
                    t
                    for t in hidden.tensors
                    if t.requires_grad and t.grad is not None and id(t) not in owned and not self._moved(t)
                ]
                if not learning or not hidden.training:
                    continue
                path = self._recorder.names.module(hidden.owner)
                source = source_of(type(hidden.owner))
                number = assignment_line(source, type(hidden.owner).__qualname__, hidden.attribute) if source else None
                line = Line(source, number, "__init__") if source and number else None
                where = f"{type(hidden.owner).__name__}.{hidden.attribute}"
                yield make(
                    self._recorder,
                    "layers-not-registered",
                    f"{len(learning)} parameters in {where} get gradients, but parameters() does not see them: "
                    f"they are kept in a plain {hidden.kind}, so no optimizer owns them and no checkpoint holds them.",
                    line=line,
                    step=watch.steps,
                    first_step=0,
                    severity=Severity.ERROR,
                    fix=_registration(hidden.kind, hidden.attribute),
                    evidence={
                        "attribute": hidden.attribute,
                        "kind": hidden.kind,
                        "tensors": len(learning),
                        "elements": sum(t.numel() for t in learning),
                    },
                    touches=[f"module:{path}", f"optimizer:{watch.number}"],
                    module=path,
                )

    def _unused(self, watch: OptimizerWatch) -> Iterator[Finding]:
        if self._opaque:
            return
        none = {id(p) for i, p in enumerate(watch.parameters) if all(row[i] == NO_GRADIENT for row in watch.rows)}
        owned_elsewhere = self._owned() - {id(p) for p in watch.parameters}
        for root in self._recorder.names.roots():
            if not root.training:
                continue
            groups: dict[str, list[str]] = {}
            owners: dict[str, torch.nn.Module] = {}
            for name, p in root.named_parameters():
                if not p.requires_grad or p.grad is not None or id(p) in self._used or id(p) in owned_elsewhere:
                    continue
                if self._looked_at.get(id(p), 0) < 3 or (id(p) not in none and id(p) in self._owned()):
                    continue
                path, owner = owner_of(root, name)
                groups.setdefault(path, []).append(name)
                owners[path] = owner
            for path, unused in groups.items():
                owner = owners[path]
                yield make(
                    self._recorder,
                    "unused-parameter",
                    f"{len(unused)} parameter{'s' if len(unused) > 1 else ''} of {type(owner).__name__} ({listed(unused)}) took no part in the loss "
                    f"in {watch.steps} steps.",
                    line=forward_line(owner),
                    step=watch.steps,
                    first_step=0,
                    # A library's model may well have heads that this task does not need.
                    severity=Severity.WARNING if users_class(owner) else Severity.INFO,
                    fix=f"Use {module_of(unused[0]) or unused[0]} in forward, or remove it; DistributedDataParallel would refuse it.",
                    evidence={"parameters": unused[:16], "count": len(unused)},
                    touches=[*(f"parameter:{n}" for n in unused), *(f"module:{module_of(n)}" for n in unused)],
                    module=module_of(unused[0]) or None,
                    parameter=unused[0],
                )


def _fingerprint(p: torch.Tensor) -> float:
    return float(p.detach().double().sum()) if p.layout == torch.strided and not p.is_meta else 0.0


class _Hidden:
    """Tensors that can learn, kept where `parameters()` does not look."""

    __slots__ = ("attribute", "kind", "owner", "tensors", "training")

    def __init__(
        self, owner: torch.nn.Module, attribute: str, kind: str, tensors: list[torch.Tensor], training: bool
    ) -> None:
        self.owner = owner
        self.attribute = attribute
        self.kind = kind
        self.tensors = tensors
        self.training = training


def _hidden(root: torch.nn.Module) -> Iterator[_Hidden]:
    registered = {id(p) for p in root.parameters()}
    known = {id(m) for m in root.modules()}
    for owner in root.modules():
        for attribute, value in list(vars(owner).items()):
            if attribute in ("_modules", "_parameters", "_buffers") or attribute.endswith("_hooks"):
                continue
            tensors: list[torch.Tensor] = []
            training = False
            for item in _items(value):
                if isinstance(item, torch.nn.Module) and id(item) not in known:
                    tensors += [p for p in item.parameters() if id(p) not in registered]
                    training = training or item.training
                elif (
                    isinstance(item, torch.Tensor)
                    and item.is_leaf
                    and item.requires_grad
                    and id(item) not in registered
                ):
                    tensors.append(item)
                    training = True
            if tensors:
                plain = type(value) in (list, tuple, dict, set)
                kind = type(value).__name__ if plain else "attribute"
                yield _Hidden(owner, attribute, kind, tensors, training)


def _items(value: Any) -> Iterator[Any]:
    if isinstance(value, (torch.nn.Module, torch.Tensor)):
        yield value
    elif isinstance(value, (list, tuple, set)):
        for item in value:
            yield from _items(item) if isinstance(item, (list, tuple)) else iter((item,))
    elif type(value) is dict:
        yield from value.values()


def _registration(kind: str, attribute: str) -> str:
    keeper = {"list": "nn.ModuleList", "tuple": "nn.ModuleList", "dict": "nn.ModuleDict"}.get(kind)
    if keeper:
        return f"self.{attribute} = {keeper}(…) (nn.ParameterList or nn.ParameterDict for bare tensors), before the optimizer is built."
    return f"self.{attribute} = nn.Parameter(…) or a registered submodule, before the optimizer is built."
