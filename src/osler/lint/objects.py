"""What a value is in a training: an optimizer, a model, a loss, a scheduler, a loader."""

from __future__ import annotations

import re
from collections.abc import Callable

from osler.syntax.values import INSTANCE, RESULT, UNKNOWN, Value, alternatives, ancestry

_OPTIMIZER = re.compile(r"(^|[._])(opt|optim|optimi[sz]er|adam\w*|sgd)s?(_?[a-z0-9]*)?$", re.IGNORECASE)
_SCHEDULER = re.compile(r"sched|lr_?sch|warmup", re.IGNORECASE)
_SCALER = re.compile(r"(^|[._])(grad_?)?scaler$", re.IGNORECASE)
_MODEL = re.compile(r"(^|[._])(\w*model|\w*net|network|generator|discriminator|encoder|decoder)$", re.IGNORECASE)
_LOADER = re.compile(r"load(er)?s?$|(^|[._])dl$|dataiter", re.IGNORECASE)

SCHEDULERS = "torch.optim.lr_scheduler."
MODULE = "torch.nn.Module"
FRAMEWORKS = ("lightning", "pytorch_lightning", "transformers.Trainer", "keras", "ignite", "fastai")


def _any(value: Value, test: Callable[[Value], bool]) -> bool:
    return any(test(v) for v in alternatives(value))


def made_by(value: Value, *prefixes: str) -> bool:
    """Whether the value may be an instance or a result of something whose dotted name begins so."""
    return _any(value, lambda v: v.kind in (INSTANCE, RESULT) and v.definition is None and v.name.startswith(prefixes))


def descends_from(value: Value, *names: str) -> bool:
    """Whether the value may be an object of a class of the project that descends from one of these library classes."""
    return _any(value, lambda v: v.definition is not None and any(a in names for a in ancestry(v)))


def known_optimizer(value: Value) -> bool:
    """It was made by calling a class of `torch.optim` or a well-known optimizer of another package."""
    return _any(value, lambda v: v.kind == INSTANCE and v.definition is None and _is_optimizer_class(v.name))


def _is_optimizer_class(name: str) -> bool:
    last = name.rpartition(".")[2]
    if name.startswith("torch.optim.") and not name.startswith(SCHEDULERS):
        return True
    return last in {
        "AdamW",
        "Adam",
        "SGD",
        "Adafactor",
        "Lion",
        "LAMB",
        "Lamb",
        "FusedAdam",
        "DeepSpeedCPUAdam",
        "AdamW8bit",
    }


def optimizer_like(value: Value) -> bool:
    """It is an optimizer, or by its name meant to be one."""
    return known_optimizer(value) or _any(
        value, lambda v: v.kind in (UNKNOWN, RESULT) and bool(_OPTIMIZER.search(v.name)) and not scheduler_like(v)
    )


def scheduler_like(value: Value) -> bool:
    """It is a learning-rate scheduler, or by its name meant to be one."""
    return _any(value, lambda v: v.name.startswith(SCHEDULERS) or bool(_SCHEDULER.search(v.name)))


def scaler_like(value: Value) -> bool:
    """It is a `GradScaler`, or by its name meant to be one."""
    return _any(value, lambda v: v.name.endswith("GradScaler") or (v.kind == UNKNOWN and bool(_SCALER.search(v.name))))


def known_model(value: Value) -> bool:
    """It is an `nn.Module`: of the project, or of `torch.nn` itself."""
    return descends_from(value, MODULE) or made_by(value, "torch.nn.", "torchvision.models.", "timm.create_model")


def model_like(value: Value) -> bool:
    """It is a module, or by its name meant to be a model."""
    return known_model(value) or _any(value, lambda v: v.kind in (UNKNOWN, RESULT) and bool(_MODEL.search(v.name)))


def loader_like(value: Value) -> bool:
    """It is a `DataLoader`, or by its name meant to be one."""
    return made_by(value, "torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader") or _any(
        value, lambda v: v.kind in (UNKNOWN, RESULT) and bool(_LOADER.search(v.name))
    )


def stepped(receiver: Value | None, arguments: tuple[Value, ...]) -> Value | None:
    """The optimizer of a `.step` event: its receiver, or the argument of `scaler.step(optimizer)`; None for another."""
    if receiver is None or scheduler_like(receiver):
        return None
    if scaler_like(receiver):
        return arguments[0] if arguments else None
    return receiver if optimizer_like(receiver) else None
