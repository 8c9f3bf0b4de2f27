"""Trainings run bare, watched, and watched with forced replays: the digests of everything that they leave behind."""

from __future__ import annotations

import copy
import hashlib
import io
import pickle
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from batch import main
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.checkpoint import checkpoint

import osler
from osler.training import session

STEPS = 14
Training = Callable[[], Iterator[Any]]


def digest(value: Any) -> Any:
    """Equal exactly when the values are equal bit for bit."""
    if isinstance(value, torch.Tensor):
        data = value.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes()
        return [str(value.dtype), list(value.shape), hashlib.sha256(data).hexdigest()]
    if isinstance(value, dict):
        return {str(k): digest(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [digest(v) for v in value]
    return repr(value)


def force_replays() -> tuple[Any, list[int]]:
    """Before every second step, and after each backward inside a closure, osler is told that something went wrong."""
    taken: list[int] = []
    recorder = session._active[0].recorder
    end_backward = recorder.end_backward

    def after() -> None:
        if recorder.in_step and recorder.tape.segments:
            recorder.trip("forced by the test", recorder._latest)
            taken.append(-1)
        end_backward()

    recorder.end_backward = after

    def before(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        watch = recorder.watch_of(optimizer)
        if watch.steps % 2 and not recorder.replaying and recorder.tape.segments:
            recorder.trip("forced by the test", watch)
            taken.append(watch.steps)

    return register_optimizer_step_pre_hook(before), taken


def outcome(training: Training, mode: str) -> dict[str, Any]:
    """Run it once and gather everything that must not depend on osler."""
    torch.manual_seed(3)
    random.seed(3)
    np.random.seed(3)
    torch._dynamo.reset() if "_dynamo" in vars(torch) else None
    steps = training()
    watch = None if mode == "bare" else osler.watch(budget="3%" if mode == "thrifty" else "none")
    hook, taken = None, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if watch is not None:
            watch.__enter__()
            if mode == "forced":
                hook, taken = force_replays()
        try:
            losses, last = [], None
            for value in steps:
                if isinstance(value, dict):
                    last = value
                else:
                    losses.append(value)
        finally:
            if hook is not None:
                hook.remove()
            if watch is not None:
                watch.__exit__(None, None, None)
    assert last is not None
    models, optimizers = last["models"], last["optimizers"]
    return {
        "losses": digest(losses),
        "state": [digest(m.state_dict()) for m in models],
        "grads": [[digest(p.grad) for p in m.parameters()] for m in models],
        "optimizers": [digest(o.state_dict()) for o in optimizers],
        "extra": digest(last.get("extra")),
        "rng": [digest(torch.get_rng_state()), repr(random.getstate()), digest(torch.from_numpy(np.random.get_state()[1].copy()))],
        "modules": [[[type(c).__name__, sorted(vars(c))] for c in m.modules()] for m in models],
        "hooks": [[sum(len(v) for k, v in vars(c).items() if k.endswith("_hooks")) for c in m.modules()] for m in models],
        "warnings": sorted({f"{w.category.__name__}: {w.message}" for w in caught}),
        "replays": len(taken),
        "notes": [] if watch is None else watch.report.notes,
    }  # fmt: skip


def compared(training: Training) -> dict[str, Any]:
    """What differs from the bare run, by mode."""
    bare = outcome(training, "bare")
    bare.pop("notes"), bare.pop("replays")
    out: dict[str, Any] = {"losses": len(bare["losses"])}
    for mode in ("watched", "thrifty", "forced"):
        seen = outcome(training, mode)
        out[mode] = {
            "notes": seen.pop("notes"),
            "replays": seen.pop("replays"),
            "differs": [key for key in bare if bare[key] != seen[key]],
            "warnings": [bare["warnings"], seen["warnings"]] if bare["warnings"] != seen["warnings"] else [],
        }
    return out


def mlp() -> Iterator[Any]:
    model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Dropout(0.5), nn.Linear(24, 3))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(STEPS):
        opt.zero_grad()
        loss = F.cross_entropy(F.dropout(model(torch.randn(16, 6)), 0.2), torch.randint(0, 3, (16,)))
        loss.backward()
        opt.step()
        yield loss.detach()
    yield {"models": [model], "optimizers": [opt]}


def cnn() -> Iterator[Any]:
    model = nn.Sequential(
        nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(inplace=True), nn.Dropout2d(0.2), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(54, 4)
    )  # fmt: skip
    opt = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, STEPS)
    for step in range(STEPS):
        opt.zero_grad()
        for _ in range(2):
            loss = F.cross_entropy(model(torch.randn(8, 1, 8, 8)), torch.arange(8) % 4) / 2
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        schedule.step()
        if step % 5 == 4:
            model.eval()
            with torch.no_grad():
                yield model(torch.randn(8, 1, 8, 8))
            model.train()
        yield loss.detach()
    yield {"models": [model], "optimizers": [opt], "extra": schedule.state_dict()}


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        self.first = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.second = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.head = nn.Linear(16, 11)
        self.calls = 0

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        x = self.embed(tokens)
        x = checkpoint(self.first, x, use_reentrant=False)
        x = checkpoint(self.second, x, use_reentrant=True)
        return self.head(x)


def transformer() -> Iterator[Any]:
    model = Transformer()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(STEPS):
        tokens = torch.randint(0, 11, (4, 9))
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        opt.zero_grad(set_to_none=False)
        loss.backward()
        opt.step()
        yield loss.detach()
    yield {"models": [model], "optimizers": [opt], "extra": model.calls}


def gan() -> Iterator[Any]:
    gen = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 5))
    critic = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(5, 8)), nn.LeakyReLU(), nn.Linear(8, 1))
    opt_g, opt_c = torch.optim.Adam(gen.parameters()), torch.optim.RMSprop(critic.parameters())
    for step in range(STEPS):
        fake = gen(torch.randn(6, 4))
        real = torch.randn(6, 5)
        mix = (real + torch.rand(6, 1) * (fake.detach() - real)).requires_grad_()
        (grad,) = torch.autograd.grad(critic(mix).sum(), mix, create_graph=True)
        penalty = ((grad.pow(2).sum(1) + 1e-12).sqrt() - 1).pow(2).mean()
        opt_c.zero_grad()
        loss = critic(fake.detach()).mean() - critic(real).mean() + 10 * penalty
        loss.backward()
        opt_c.step()
        yield loss.detach()
        if step % 3 == 0:
            opt_g.zero_grad()
            loss = -critic(fake).mean()
            loss.backward()
            opt_g.step()
            yield loss.detach()
    yield {"models": [gen, critic], "optimizers": [opt_g, opt_c]}


def lbfgs() -> Iterator[Any]:
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
    opt = torch.optim.LBFGS(model.parameters(), max_iter=4, line_search_fn="strong_wolfe")
    x = torch.randn(12, 4)
    y = x.prod(1, keepdim=True)
    for _ in range(6):

        def closure() -> torch.Tensor:
            opt.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss

        yield opt.step(closure).detach()
    yield {"models": [model], "optimizers": [opt]}


def amp() -> Iterator[Any]:
    model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 2))
    opt = torch.optim.SGD(model.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=4)
    for _ in range(STEPS):
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.mse_loss(model(torch.randn(8, 6)).float(), torch.randn(8, 2))
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
        yield loss.detach()
    yield {"models": [model], "optimizers": [opt], "extra": scaler.state_dict()}


def compiled() -> Iterator[Any]:
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 2))
    model = torch.compile(net, backend="eager")
    opt = torch.optim.Adam(net.parameters())

    @torch.compile(backend="eager")
    def criterion(out: torch.Tensor) -> torch.Tensor:
        return F.dropout(out, 0.1).pow(2).mean()

    for _ in range(STEPS):
        opt.zero_grad()
        loss = criterion(model(torch.randn(8, 6)))
        loss.backward()
        opt.step()
        yield loss.detach()
    yield {"models": [net], "optimizers": [opt]}


def case_mlp() -> dict[str, Any]:
    return compared(mlp)


def case_cnn() -> dict[str, Any]:
    return compared(cnn)


def case_transformer() -> dict[str, Any]:
    return compared(transformer)


def case_gan() -> dict[str, Any]:
    return compared(gan)


def case_lbfgs() -> dict[str, Any]:
    return compared(lbfgs)


def case_amp() -> dict[str, Any]:
    return compared(amp)


def case_compiled() -> dict[str, Any]:
    return compared(compiled)


def case_copies() -> dict[str, Any]:
    """Saving and copying the model, the optimizer and the loss between steps takes nothing of osler along."""
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
    opt = torch.optim.Adam(model.parameters())
    found: list[str] = []
    same = True
    with osler.watch(budget="none"):
        for step in range(6):
            opt.zero_grad()
            model(torch.randn(4, 6)).pow(2).mean().backward()
            for what in (model, opt, {"model": model, "opt": opt.state_dict()}):
                buffer = io.BytesIO()
                torch.save(what, buffer)
                if b"osler" in buffer.getvalue() or b"osler" in pickle.dumps(what):
                    found.append(f"{type(what).__name__} at step {step}")
            twin = copy.deepcopy(model)
            same = same and [sorted(vars(m)) for m in twin.modules()] == [sorted(vars(m)) for m in model.modules()]
            same = same and not any(len(v) for m in twin.modules() for k, v in vars(m).items() if k.endswith("_hooks"))
            same = same and torch.equal(twin(torch.ones(1, 6)), model(torch.ones(1, 6)))
            opt.step()
        fresh = torch.load(io.BytesIO(buffer.getvalue()), weights_only=False)
    return {"found": found, "same": same, "loads": sorted(fresh)}


if __name__ == "__main__":
    main(globals())
