"""Trainings in which every number is finite and something is wrong all the same, each with a twin that is well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from batch import findings_of, main, seed
from torch import nn


def adam(model: nn.Module, lr: float = 1e-3) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=lr)


def steps(
    model: nn.Module, opt: torch.optim.Optimizer, count: int = 80, x: Callable[[], torch.Tensor] | None = None
) -> None:
    seed(1)
    for _ in range(count):
        opt.zero_grad()
        inputs = torch.randn(32, 8) if x is None else x()
        loss = model(inputs).pow(2).mean() + 0.1 * model(inputs).sum().abs().sqrt().detach()
        loss.backward()
        opt.step()


def regress(model: nn.Module, opt: torch.optim.Optimizer, count: int = 80, scale: float = 1.0) -> None:
    seed(1)
    for _ in range(count):
        x = torch.randn(32, 8)
        opt.zero_grad()
        F.mse_loss(model(x * scale), x[:, :2].sin()).backward()
        opt.step()


def pair(faulty: Callable[[], None], clean: Callable[[], None]) -> dict[str, Any]:
    seed()
    a = findings_of(faulty)
    seed()
    b = findings_of(clean)
    return {"faulty": a, "clean": b}


class Deep(nn.Module):
    def __init__(self, act: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 16), *(nn.Linear(16, 16) for _ in range(12)), nn.Linear(16, 2)])
        self.act = act

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers[:-1]:
            x = self.act(layer(x))
        return self.layers[-1](x)


def case_vanishing() -> dict[str, Any]:
    def run(act: Any) -> None:
        model = Deep(act)
        for layer in model.layers:
            nn.init.kaiming_normal_(layer.weight)
        regress(model, adam(model))

    return pair(lambda: run(torch.sigmoid), lambda: run(F.relu))


def case_exploding() -> dict[str, Any]:
    """Plain gradient descent on a quartic beyond the rate at which it converges."""

    def run(lr: float) -> None:
        w = nn.Linear(4, 4, bias=False)
        nn.init.constant_(w.weight, 0.5)
        opt = torch.optim.SGD(w.parameters(), lr=lr)
        for _ in range(24):
            opt.zero_grad()
            w(torch.eye(4)).pow(2).sum().backward()
            opt.step()  # here: exploding

    return pair(lambda: run(2.0), lambda: run(0.1))


class Rounded(nn.Module):
    def __init__(self, hard: bool) -> None:
        super().__init__()
        self.first, self.last, self.hard = nn.Linear(8, 16), nn.Linear(16, 2), hard

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        q = torch.round(x)  # here: rounded
        return self.last(q if self.hard else x + (q - x).detach())


def case_zero() -> dict[str, Any]:
    def run(hard: bool) -> None:
        model = Rounded(hard)
        regress(model, adam(model))

    return pair(lambda: run(True), lambda: run(False))


def case_update_high() -> dict[str, Any]:
    def run(lr: float) -> None:
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
        opt = adam(model, lr)  # here: update ratio
        regress(model, opt, 100)

    return pair(lambda: run(1.0), lambda: run(1e-3))


def case_update_low() -> dict[str, Any]:
    def run(lr: float) -> None:
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
        opt = torch.optim.SGD(model.parameters(), lr=lr)  # here: slow
        regress(model, opt, 160)

    return pair(lambda: run(1e-12), lambda: run(1e-2))


class Relu(nn.Module):
    def __init__(self, bias: float) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 2)
        nn.init.constant_(self.first.bias, bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(F.relu(self.first(x)))  # here: dead


def case_dead() -> dict[str, Any]:
    def run(bias: float) -> None:
        model = Relu(bias)
        regress(model, adam(model), 100)

    return pair(lambda: run(-50.0), lambda: run(0.0))


class Squashed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.tanh(self.first(x)))  # here: saturated


def case_saturated() -> dict[str, Any]:
    def run(scale: float) -> None:
        model = Squashed()
        regress(model, adam(model), 100, scale)

    return pair(lambda: run(1e4), lambda: run(1.0))


class WithSpare(nn.Module):
    def __init__(self, use: bool) -> None:
        super().__init__()
        self.body, self.spare, self.use = nn.Linear(8, 2), nn.Linear(8, 2), use

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # here: unused
        return self.body(x) + (self.spare(x) if self.use else 0)


def case_unused() -> dict[str, Any]:
    def run(use: bool) -> None:
        model = WithSpare(use)
        regress(model, adam(model), 40)

    return pair(lambda: run(False), lambda: run(True))


def case_not_in_optimizer() -> dict[str, Any]:
    def run(whole: bool) -> None:
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
        opt = torch.optim.Adam(model.parameters() if whole else model[0].parameters())  # here: left out
        regress(model, opt, 40)

    return pair(lambda: run(False), lambda: run(True))


def case_backbone_left_out() -> dict[str, Any]:
    """Training the head alone is a habit: worth a word, no warning."""

    def run(frozen: bool) -> None:
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
        model[0].requires_grad_(not frozen)
        regress(model, adam(model[2]), 40)

    return pair(lambda: run(False), lambda: run(True))


def case_stale() -> dict[str, Any]:
    def run(late: bool) -> None:
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
        if not late:
            model[2] = nn.Linear(16, 2)
        opt = torch.optim.Adam(model.parameters())  # here: stale
        if late:
            model[2] = nn.Linear(16, 2)
        regress(model, opt, 40)

    return pair(lambda: run(True), lambda: run(False))


class Listed(nn.Module):
    def __init__(self, registered: bool) -> None:
        super().__init__()
        layers = [nn.Linear(8, 8) for _ in range(2)]
        self.blocks: Any = layers  # here: unregistered
        if registered:
            self.blocks = nn.ModuleList(layers)
        self.last = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = torch.tanh(block(x))
        return self.last(x)


def case_not_registered() -> dict[str, Any]:
    def run(registered: bool) -> None:
        model = Listed(registered)
        regress(model, adam(model), 40)

    return pair(lambda: run(False), lambda: run(True))


class Cut(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.first, self.last, self.how = nn.Linear(8, 8), nn.Linear(8, 2), how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.first(x))
        if self.how == "detach":
            h = h.detach()  # here: detach
        elif self.how == "numpy":
            h = torch.from_numpy(h.detach().numpy())  # here: numpy
        elif self.how == "no_grad":
            with torch.no_grad():
                h = torch.tanh(self.first(x))  # here: no grad
        return self.last(h)


def case_detached() -> dict[str, Any]:
    def run(how: str) -> None:
        model = Cut(how)
        regress(model, adam(model), 40)

    out: dict[str, Any] = {}
    for how in ("detach", "numpy", "no_grad", "none"):
        seed()
        out[how] = findings_of(lambda how=how: run(how))
    return out


def case_refused() -> dict[str, Any]:
    """`backward` on a loss without a graph."""
    model = nn.Linear(8, 2)

    def training() -> None:
        loss = model(torch.randn(4, 8)).argmax(1).float().mean()  # here: refused
        loss.backward()

    return {**findings_of(training), "frozen": findings_of(frozen)}


def frozen() -> None:
    model = nn.Linear(8, 2).requires_grad_(False)
    model(torch.randn(4, 8)).pow(2).mean().backward()  # here: frozen


def case_short() -> dict[str, Any]:
    """Three steps are too few for most judgements: silence must not look like health."""
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
    return {
        "short": findings_of(lambda: regress(model, adam(model), 3)),
        "none": findings_of(lambda: None),
        "lbfgs": findings_of(lbfgs),
    }


def lbfgs() -> None:
    model = nn.Linear(8, 2)
    opt = torch.optim.LBFGS(model.parameters(), max_iter=2)
    x, y = torch.randn(16, 8), torch.randn(16, 2)

    def closure() -> torch.Tensor:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        return loss

    for _ in range(5):
        opt.step(closure)


if __name__ == "__main__":
    main(globals())
