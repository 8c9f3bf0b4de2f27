"""What else goes on in a script around its training: osler must neither disturb it nor stumble over it."""

from __future__ import annotations

import gc
import os
import sys
import threading
import warnings
from typing import Any

import torch
import torch.nn.functional as F
from batch import findings_of, main, seed
from torch import nn
from torch.nn.modules import module as nn_module
from torch.overrides import TorchFunctionMode
from torch.utils.data import DataLoader, TensorDataset

import osler
from osler.core.settings import Settings
from osler.records.memory import MemorySink
from osler.training import session


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def step(model: nn.Module, opt: torch.optim.Optimizer, x: torch.Tensor | None = None) -> float:
    opt.zero_grad()
    loss = model(torch.randn(6, 4) if x is None else x).pow(2).mean()
    loss.backward()
    opt.step()
    return float(loss.detach())


def told(w: Any) -> dict[str, Any]:
    return {"findings": [f.rule for f in w.report.findings], "notes": w.report.notes}


def located(training: Any) -> list[Any]:
    """Rule and line of the first finding."""
    found = findings_of(training)["findings"][0]
    return [found["rule"], found["where"].get("line")]


def broken(model: nn.Module, opt: torch.optim.Optimizer) -> None:
    opt.zero_grad()
    loss = model(torch.ones(3, 4)).mul(0).log().mean()  # here: broken
    loss.backward()
    opt.step()


def modes() -> int:
    return len(torch.overrides._get_current_function_mode_stack())


def case_device_contexts() -> dict[str, Any]:
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    devices: list[str] = []
    with osler.watch(budget="none") as w:
        for i in range(3):
            with torch.device("cpu"):
                out = model(torch.randn(3, 4))
                with torch.device("meta"):
                    devices.append(str(torch.ones(1).device))
                    if i == 1:
                        model(torch.randn(3, 4, device="cpu"))
                    devices.append(str(torch.ones(1).device))
                devices.append(str(torch.ones(1).device))
                opt.zero_grad()
                loss = out.pow(2).mean()
                loss.backward()
                with torch.device("meta"):
                    opt.step()
                    devices.append(str(torch.ones(1).device))
            devices.append(str(torch.ones(1).device))
    return {**told(w), "devices": devices, "modes": modes()}


def case_default_device() -> dict[str, Any]:
    """`set_default_device` wants its own mode at the bottom of the stack, also when it is called again."""
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    error, devices = "", []
    with osler.watch(budget="none") as w:
        try:
            for device in ("cpu", "meta", "cpu"):
                torch.set_default_device(device)
                devices.append(str(torch.ones(1).device))
                step(model, opt, torch.randn(3, 4, device="cpu"))
                devices.append(str(torch.ones(1).device))
        except AssertionError as caught:
            error = str(caught)
    try:
        torch.set_default_device(None)
    except AssertionError as caught:
        error = str(caught)
    return {**told(w), "error": error, "devices": devices, "modes": modes()}


class Counting(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


def counted() -> list[str]:
    seed()
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    with Counting() as mode:
        for _ in range(3):
            step(model, opt)
    return mode.names


def counted_inside() -> list[str]:
    """The mode is entered and left between the forward and the backward."""
    seed()
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    names = []
    for _ in range(3):
        opt.zero_grad()
        out = model(torch.randn(6, 4))
        with Counting() as mode:
            loss = out.pow(2).mean() + 1
        names += mode.names
        loss.backward()
        opt.step()
    return names


def subsequence(short: list[str], long: list[str]) -> bool:
    """Whether all of `short` is in `long`, in that order."""
    rest = iter(long)
    return all(any(a == b for b in rest) for a in short)


def case_function_modes() -> dict[str, Any]:
    bare, inside = counted(), counted_inside()
    with osler.watch(budget="none") as w:
        seen, seen_inside = counted(), counted_inside()
    return {
        **told(w),
        "calls": len(bare) > 20 and len(inside) > 5,
        "in_order": subsequence(bare, seen),
        "same_inside": seen_inside == inside,
        "modes": modes(),
    }


def case_transforms() -> dict[str, Any]:
    seed()
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    weights = dict(model.named_parameters())

    def loss(p: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, p, (x,)).pow(2).mean()

    def everything() -> list[torch.Tensor]:
        seed(4)
        x = torch.randn(5, 4)
        grads = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, x)
        out = [
            *grads.values(),
            torch.func.vmap(model)(x),
            torch.func.jacrev(model)(x[0]),
            torch.func.hessian(lambda v: model(v).sum())(x[0]),
        ]
        jvp = torch.func.jvp(model, (x,), (torch.ones_like(x),))
        return [t.detach().clone() for t in [*out, *jvp]]

    bare = everything()
    with osler.watch(budget="none") as w:
        seen = everything()
        step(model, opt)
        again = len(everything())
        p = {k: v.detach().clone() for k, v in weights.items()}
        for _ in range(3):
            g = torch.func.grad(loss)(p, torch.randn(5, 4))
            p = {k: v - 0.1 * g[k] for k, v in p.items()}
        for _ in range(3):
            step(model, opt)
    return {
        **told(w),
        "same": all(torch.equal(a, b) for a, b in zip(bare, seen)),
        "again": again == len(bare),
        "modes": modes(),
    }


def case_jit_trace() -> dict[str, Any]:
    seed()
    model = Branching()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(6, 4)
    error, same, codes = "", [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bare = torch.jit.trace(model, (x,))
        with osler.watch(budget="none") as w:
            try:
                for _ in range(3):
                    traced = torch.jit.trace(model, (x,))
                    codes.append(traced.code == bare.code)
                    same.append(torch.equal(traced(x), model(x)))
                    step(model, opt)
            except Exception as caught:
                error = type(caught).__name__
    return {**told(w), "error": error, "same": same, "codes": codes, "modes": modes()}


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = net()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.log_softmax(self.body(x), -1) + 1


def case_tracing() -> dict[str, Any]:
    seed()
    model = Branching()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(6, 4)

    def traced() -> list[str]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [
                str(torch.export.export(model, (x,)).graph),
                str(torch.fx.symbolic_trace(model).graph),
            ]

    step(model, opt)
    bare = traced()
    with osler.watch(budget="none") as w:
        first = traced()
        for _ in range(3):
            step(model, opt)
        out = model(x)
        between = traced()
        out.mean().backward()
        opt.step()
    return {
        **told(w),
        "first": [a == b for a, b in zip(bare, first)],
        "between": [a == b for a, b in zip(bare, between)],
        "modes": modes(),
    }


def case_another_thread() -> dict[str, Any]:
    seed()
    model, other = net(), net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    opt2 = torch.optim.SGD(other.parameters(), lr=0.1)
    x = torch.randn(3, 4)
    results: list[Any] = []
    stop = threading.Event()

    def infer() -> None:
        while not stop.is_set():
            results.append(model(x).sum().item() is not None)
            results.append(step(other, opt2) is not None)

    with osler.watch(budget="none") as w:
        thread = threading.Thread(target=infer)
        thread.start()
        for _ in range(60):
            step(model, opt)
        stop.set()
        thread.join()
        steps = session._active[0].recorder.step
        hooks = sum(
            len(v) for m in [*model.modules(), *other.modules()] for k, v in vars(m).items() if k.endswith("_hooks")
        )
    return {**told(w), "worked": len(results) > 4 and all(results), "steps": steps, "hooks": hooks, "modes": modes()}


class Refusing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = net()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.body(x)
        if x.sum() > 1000:
            raise ValueError("too large")
        return out


def case_forward_raises() -> dict[str, Any]:
    model = Refusing()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    raised = 0

    def training() -> None:
        nonlocal raised
        for i in range(8):
            try:
                step(model, opt, torch.full((3, 4), 1e6 if i in (0, 3) else 0.1))
            except ValueError:
                raised += 1
        try:
            model(torch.ones(3, 4)).pow(2).backward()  # no scalar
        except RuntimeError:
            raised += 1
        broken(model, opt)

    found = located(training)
    hooks = sum(len(v) for m in model.modules() for k, v in vars(m).items() if k.endswith("_hooks"))
    return {"raised": raised, "found": found, "hooks": hooks, "modes": modes()}


def case_loader_workers() -> dict[str, Any]:
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    with osler.watch(budget="none") as w:
        for _ in range(2):
            for (x,) in DataLoader(TensorDataset(torch.randn(12, 4)), batch_size=4, num_workers=2):
                step(model, opt, x)
                recorder = session._active[0].recorder
                seen.append([recorder.epoch, recorder.batch])
        pid = os.fork()
        if pid == 0:
            try:
                child = session._active[0].recorder
                for _ in range(2):
                    step(model, opt)
                os._exit(0 if child.step == 2 and not child.dead else 3)
            except BaseException:
                os._exit(4)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        steps = session._active[0].recorder.step
    return {**told(w), "batches": seen, "child": code, "steps": steps}


def patched() -> dict[str, Any]:
    """Everything of torch that a session may have changed."""
    from torch.amp import GradScaler
    from torch.optim import optimizer as optim
    from torch.utils.data import dataloader

    out: dict[str, Any] = {
        "Function.apply": vars(torch.autograd.Function)["apply"],
        "clip": [torch.nn.utils.clip_grad.clip_grad_norm_, torch.nn.utils.clip_grad_norm_],
        "compile": torch.compile,
        "backward": torch.autograd.backward,
        "grad": torch.autograd.grad,
        "checkpoint": torch.utils.checkpoint.CheckpointFunction,
        "modes": modes(),
    }
    for cls in (GradScaler, torch.optim.Optimizer, DataLoader, dataloader._BaseDataLoaderIter, nn.Module, torch.Tensor):
        out[cls.__name__] = dict(vars(cls))
    for module in (nn_module, optim):
        for name, value in vars(module).items():
            if name.startswith("_global") and isinstance(value, dict):
                out[name] = list(value)
    out["stdout"] = [sys.stdout, sys.stderr, sys.excepthook]
    return out


def case_restored() -> dict[str, Any]:
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.compile(model, backend="eager")(torch.ones(1, 4))
    before = patched()
    compiled = vars(type(torch.compile(model, backend="eager")))["__call__"]
    with osler.watch(budget="none"):
        during = patched()
        step(model, opt)
        step(torch.compile(net(), backend="eager"), opt)
        model(torch.ones(3, 4)).mean()  # left open
    after = patched()
    changed = [k for k in before if before[k] != during[k]]
    second = MemorySink(None)
    first = session.Session(MemorySink(None), Settings(), {}).install()
    try:
        session.Session(second, Settings(), {}).install()
        refused = ""
    except RuntimeError as error:
        refused = str(error)
    first.close()
    first.close()
    return {
        "changed": changed,
        "left": [k for k in before if before[k] != after[k]],
        "compiled": vars(type(torch.compile(model, backend="eager")))["__call__"] is compiled,
        "refused": refused,
        "left_after_two": [k for k in before if before[k] != patched()[k]],
        "active": session.active(),
    }  # fmt: skip


def tensors_alive() -> int:
    gc.collect()
    return sum(issubclass(type(o), torch.Tensor) for o in gc.get_objects())


def case_no_leak() -> dict[str, Any]:
    """Forwards under grad mode with no backward, retained graphs and losses that are summed up."""
    model = net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    counts: dict[str, list[int]] = {"evaluation": [], "training": [], "open": []}
    with osler.watch(budget="none") as w:
        for _ in range(20):
            step(model, opt)
        for i in range(60):
            out = model(torch.randn(6, 4))
            F.mse_loss(out, torch.zeros_like(out)).item()
            if i in (9, 59):
                del out
                counts["evaluation"].append(tensors_alive())
        for i in range(60):
            step(model, opt)
            if i in (9, 59):
                counts["training"].append(tensors_alive())
        for i in range(60):
            x = torch.randn(6, 4)
            for _ in range(3):
                x = x + torch.randn(6, 4)  # no graph at all
            if i in (9, 59):
                counts["open"].append(tensors_alive())
        held = len(session._active[0].recorder.tape.entries)
    return {**told(w), "counts": counts, "held": held}


if __name__ == "__main__":
    main(globals())
