"""Trainings with one fault each; the faulty line carries a mark that the tests look for."""

from __future__ import annotations

import warnings
from typing import Any

import torch
import torch.nn.functional as F
from batch import findings_of, main
from torch import nn
from torch.utils.checkpoint import checkpoint


def sgd(model: nn.Module, lr: float = 0.01) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=lr)


def with_zero(x: torch.Tensor, step: int, at: int = 2) -> torch.Tensor:
    """One element of sample 3 becomes 0 at step `at`."""
    if step == at:
        x = x.clone()
        x[3, 1] = 0.0
    return x


def case_dropout() -> dict[str, Any]:
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4))
    opt = sgd(model)

    def training() -> None:
        for step in range(5):
            x = torch.rand(8, 4) + 0.1
            opt.zero_grad()
            out = model(torch.randn(8, 6))
            loss = (out * with_zero(x, step).log()).mean()  # here: dropout
            loss.backward()
            opt.step()

    return findings_of(training)


def case_functional_dropout() -> dict[str, Any]:
    """The bad number is made by what the dropout left, so the replay must draw the same mask."""
    model = nn.Linear(6, 8)
    opt = sgd(model)
    dropped: list[int] = []

    def training() -> None:
        for step in range(4):
            opt.zero_grad()
            out = F.dropout(model(torch.randn(8, 6)).abs() + 0.5, 0.1 if step == 2 else 0.0)
            if step == 2:
                dropped.append(int((out == 0).sum()))
            (1 / out).mean().backward()  # here: functional dropout
            opt.step()

    return {**findings_of(training), "dropped": dropped}


def case_batch_norm() -> dict[str, Any]:
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 3))
    opt = sgd(model)

    def training() -> None:
        for step in range(4):
            x = torch.randn(8, 1, 6, 6)
            if step == 2:
                x[5, 0, 1, 2] = float("nan")
            opt.zero_grad()
            loss = F.cross_entropy(model(x), torch.arange(8) % 3)  # here: batch norm
            loss.backward()
            opt.step()

    return {**findings_of(training), "batches": int(model[1].num_batches_tracked)}


def case_in_place() -> dict[str, Any]:
    """`sub_` on an intermediate result, then a logarithm of what is left."""
    model = nn.Linear(5, 4)
    opt = sgd(model)

    def training() -> None:
        for step in range(4):
            opt.zero_grad()
            p = model(torch.randn(6, 5)).softmax(-1) + 1.0
            p.sub_(1.0)
            if step == 2:
                p.mul_(torch.tensor([0.0, 1.0, 1.0, 1.0]))
            loss = -p.log().mean()  # here: in place
            loss.backward()
            opt.step()

    return findings_of(training)


def case_input_changed_in_place() -> dict[str, Any]:
    """The input is overwritten after the forward: it cannot be repeated, and osler must say so instead of guessing."""
    model = nn.Linear(4, 4)
    opt = sgd(model)

    def training() -> None:
        for step in range(4):
            opt.zero_grad()
            x = torch.rand(6, 4) + 0.5
            if step == 2:
                x[1, 1] = 0.0
            loss = (model(torch.ones(6, 4)) / x).mean()  # here: input changed
            x.data.fill_(7.0)
            loss.backward()
            opt.step()

    return findings_of(training)


def case_accumulation() -> dict[str, Any]:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
    opt = sgd(model)

    def training() -> None:
        for step in range(4):
            opt.zero_grad()
            for micro in range(4):
                x = torch.rand(8, 4) + 0.1
                if step == 2 and micro == 1:
                    x[6, 2] = 0.0
                out = model(torch.randn(8, 4))
                loss = (out / x).pow(2).mean() / 4  # here: accumulation
                loss.backward()
            opt.step()

    return findings_of(training)


def case_two_losses_one_graph() -> dict[str, Any]:
    model, head = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)
    opt = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.01)

    def training() -> None:
        for step in range(4):
            opt.zero_grad()
            out = model(torch.randn(8, 4))
            out.pow(2).mean().backward(retain_graph=True)
            scale = torch.zeros(4) if step == 2 else torch.ones(4)
            loss = (head(out) * scale).pow(2).sum(1).sqrt().mean()  # here: retained graph
            loss.backward()
            opt.step()

    return findings_of(training)


def case_autocast_fp16() -> dict[str, Any]:
    model = nn.Linear(8, 8)
    opt = sgd(model)

    def training() -> None:
        for step in range(4):
            opt.zero_grad()
            x = torch.randn(8, 8)
            with torch.autocast("cpu", dtype=torch.float16):
                out = model(x * (1e6 if step == 2 else 1.0))  # here: autocast
            loss = out.float().pow(2).mean()
            loss.backward()
            opt.step()

    return findings_of(training)


def case_grad_scaler() -> dict[str, Any]:
    """A finite scaler skip at first is healthy; a NaN loss at step 4 is not."""
    model = nn.Linear(8, 8)
    opt = sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**60)
    applied: list[float] = []

    def training() -> None:
        for step in range(45):
            opt.zero_grad()
            x = torch.rand(8, 8) + 0.5
            if step == 40:
                x[2, 3] = -1.0
            with torch.autocast("cpu", dtype=torch.float16):
                out = model(x)
            loss = (out.float() * x.log()).mean()  # here: scaler
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            applied.append(scaler.get_scale())

    return {**findings_of(training), "scale": applied}


def case_scaler_keeps_skipping() -> dict[str, Any]:
    """The gradient overflows at every scale: after `numbers.scaler_skips` skips in a row it is a fault."""
    model = nn.Linear(4, 1)
    opt = sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)

    def training() -> None:
        for _ in range(16):
            opt.zero_grad()
            out = model(torch.ones(4, 4))
            loss = ((out - out.detach()) ** 2).sqrt().mean()  # here: always skipped
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()

    return findings_of(training)


class Checkpointed(nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.reentrant = reentrant
        self.first = nn.Linear(4, 8)
        self.drop = nn.Dropout(0.3)
        self.last = nn.Linear(8, 4)

    def middle(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return torch.sqrt(self.drop(self.first(x)).abs() * scale + (scale - 1).abs() * 0.0)  # here: checkpointed

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return self.last(checkpoint(self.middle, x, scale, use_reentrant=self.reentrant))


def _checkpointed(reentrant: bool) -> dict[str, Any]:
    model = Checkpointed(reentrant)
    model.drop.p = 0.0
    opt = sgd(model)
    calls: list[int] = []
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(lambda p: calls.append(1))

    def training() -> None:
        for step in range(3):
            opt.zero_grad()
            scale = torch.ones(8)
            scale[5] = float(step < 2)
            model(torch.randn(8, 4, requires_grad=True), scale).pow(2).mean().backward()
            opt.step()

    return {**findings_of(training), "accumulated": len(calls)}


def case_checkpoint() -> dict[str, Any]:
    return _checkpointed(False)


def case_checkpoint_reentrant() -> dict[str, Any]:
    return _checkpointed(True)


class LogNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        p = self.fc(x).softmax(-1) * scale
        return p.log()  # here: compiled module


def case_compiled_module() -> dict[str, Any]:
    net = LogNet()
    model = torch.compile(net, backend="eager")
    opt = sgd(net)

    def training() -> None:
        for step in range(4):
            opt.zero_grad()
            scale = torch.ones(4)
            if step == 2:
                scale[1] = 0.0
            loss = -model(torch.randn(8, 4), scale).mean()
            loss.backward()
            opt.step()

    return findings_of(training)


def case_compiled_function() -> dict[str, Any]:
    model = nn.Linear(4, 4)
    opt = sgd(model)

    def criterion(out: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return (out.pow(2) / weight).mean()  # here: compiled function

    def training() -> None:
        compiled = torch.compile(criterion, backend="eager")
        for step in range(4):
            opt.zero_grad()
            weight = torch.ones(4)
            if step == 2:
                weight[2] = 0.0
            compiled(model(torch.randn(8, 4)), weight).backward()
            opt.step()

    return findings_of(training)


def case_double_backward() -> dict[str, Any]:
    """A gradient penalty whose norm is taken at 0: bad only in the second derivative."""
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    opt = sgd(model)

    def training() -> None:
        for step in range(4):
            opt.zero_grad()
            x = torch.randn(8, 4, requires_grad=True)
            out = model(x)
            if step == 2:
                out = out * 0.0
            (grad,) = torch.autograd.grad(out.sum(), x, create_graph=True)
            penalty = (grad.pow(2).sum(1).sqrt() - 1).pow(2).mean()  # here: double backward
            penalty.backward()
            opt.step()

    return findings_of(training)


def case_lbfgs() -> dict[str, Any]:
    model = nn.Linear(4, 1)
    opt = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    data = torch.ones(8, 4)

    def training() -> None:
        for step in range(4):
            y = torch.zeros(8, 1) if step == 2 else torch.ones(8, 1)

            def closure(y: torch.Tensor = y) -> torch.Tensor:
                opt.zero_grad()
                loss = ((model(data) - y) / y).pow(2).mean()  # here: lbfgs
                loss.backward()
                return loss

            opt.step(closure)

    return findings_of(training)


def case_gan() -> dict[str, Any]:
    """The generator's output is used by two backward passes; the fault is in the generator's own loss."""
    gen, critic = nn.Linear(4, 6), nn.Linear(6, 1)
    opt_g, opt_c = sgd(gen), torch.optim.Adam(critic.parameters())

    def training() -> None:
        for step in range(4):
            fake = gen(torch.randn(8, 4))
            opt_c.zero_grad()
            (critic(fake.detach()).mean() - critic(torch.randn(8, 6)).mean()).backward()
            opt_c.step()
            opt_g.zero_grad()
            score = critic(fake).sigmoid() * (0.0 if step == 2 else 1.0)
            loss = -score.log().mean()  # here: gan
            loss.backward()
            opt_g.step()  # here: generator's step

    return findings_of(training)


class Custom(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.abs().sqrt()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return grad * 0.5 * x.sign() / x.abs().sqrt()  # here: custom backward


def case_custom_function() -> dict[str, Any]:
    model = nn.Linear(4, 4)
    opt = sgd(model)

    def training() -> None:
        for step in range(4):
            opt.zero_grad()
            out = model(torch.randn(8, 4))
            if step == 2:
                out = out * torch.tensor([1.0, 0.0, 1.0, 1.0])
            Custom.apply(out).mean().backward()
            opt.step()

    return findings_of(training)


def case_nan_input() -> dict[str, Any]:
    model = nn.Linear(5, 2)
    opt = sgd(model)

    def training() -> None:
        for step in range(4):
            x = torch.randn(8, 5)
            if step == 2:
                x[3, 4] = float("nan")
                x[6, 4] = float("nan")
            opt.zero_grad()
            loss = model(x).pow(2).mean()  # here: nan input
            loss.backward()
            opt.step()

    return findings_of(training)


def case_update_that_blew_up() -> dict[str, Any]:
    """An infinite learning rate at step 2: the weights are bad from step 3 on, and step 2 is named."""
    model = nn.Linear(4, 2)
    opt = sgd(model, lr=0.125)

    def training() -> None:
        for step in range(5):
            opt.param_groups[0]["lr"] = float("inf") if step == 2 else 0.125
            opt.zero_grad()
            model(torch.ones(8, 4)).pow(2).mean().backward()
            opt.step()  # here: blew up

    return findings_of(training)


def case_attention_mask() -> dict[str, Any]:
    model = nn.Linear(4, 4)
    opt = sgd(model)

    def training() -> None:
        for step in range(4):
            opt.zero_grad()
            mask = torch.zeros(6, 4, dtype=torch.bool)
            if step == 2:
                mask[1] = mask[4] = True
            scores = model(torch.randn(6, 4)).masked_fill(mask, float("-inf"))
            scores.softmax(-1).pow(2).mean().backward()  # here: masked
            opt.step()

    return findings_of(training)


def case_exp() -> dict[str, Any]:
    model = nn.Linear(4, 4)
    opt = sgd(model)

    def training() -> None:
        for step in range(4):
            opt.zero_grad()
            shift = 200.0 if step == 2 else 0.0
            out = model(torch.zeros(6, 4)) * 0 + shift
            out.exp().mean().backward()  # here: exp
            opt.step()

    return findings_of(training)


def case_std_of_one() -> dict[str, Any]:
    model = nn.Linear(4, 4)
    opt = sgd(model)

    def training() -> None:
        for step in range(4):
            opt.zero_grad()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                out = model(torch.randn(1 if step == 2 else 6, 4))
                out.std(0).mean().backward()  # here: std
            opt.step()

    return findings_of(training)


def case_clip_refuses() -> dict[str, Any]:
    """`error_if_nonfinite` ends the script before any step: the cause is found all the same."""
    model = nn.Linear(4, 4)
    opt = sgd(model)

    def training() -> None:
        for step in range(4):
            opt.zero_grad()
            scale = 0.0 if step == 2 else 1.0
            loss = (model(torch.randn(6, 4)) * scale).pow(2).sum(1).sqrt().mean()  # here: clip
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
            opt.step()

    return findings_of(training)


def case_loss_checked_by_the_script() -> dict[str, Any]:
    failed: list[torch.Tensor] = []
    model = nn.Linear(4, 4)
    opt = sgd(model)

    def training() -> None:
        for step in range(4):
            opt.zero_grad()
            loss = (model(torch.randn(6, 4)).abs() * (0.0 if step == 2 else 1.0)).log().mean()  # here: own check
            if not torch.isfinite(loss):
                failed.append(loss)  # as a debugger or a traceback would, the script keeps the loss alive
                raise ValueError("loss is not finite")
            loss.backward()
            opt.step()

    return findings_of(training)


def case_anomaly_mode() -> dict[str, Any]:
    """The user's own detect_anomaly raises in backward; the cause is found all the same."""
    model = nn.Linear(4, 4)
    opt = sgd(model)

    def training() -> None:
        for step in range(4):
            opt.zero_grad()
            loss = (model(torch.randn(6, 4)) * (0.0 if step == 2 else 1.0)).pow(2).sum(1).sqrt().mean()  # here: anomaly
            with torch.autograd.detect_anomaly(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loss.backward()
            opt.step()

    return findings_of(training)


def case_tag() -> dict[str, Any]:
    import osler

    model = nn.Linear(4, 4)
    opt = sgd(model)

    def training() -> None:
        for step in range(4):
            opt.zero_grad()
            p = osler.tag(model(torch.randn(6, 4)).softmax(-1) * (0.0 if step == 2 else 1.0), "probabilities")
            p.log().mean().backward()  # here: tag
            opt.step()

    return findings_of(training)


class Tagging(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.ModuleDict({"head": nn.Linear(4, 4)})

    def forward(self, x: torch.Tensor, scale: float) -> torch.Tensor:
        import osler

        p = osler.tag(self.body["head"](x).softmax(-1) * scale, "inner")
        return p.log()  # here: tag in forward


def case_tag_in_forward() -> dict[str, Any]:
    model = Tagging()
    opt = sgd(model)

    def training() -> None:
        for step in range(4):
            opt.zero_grad()
            model(torch.randn(6, 4), 0.0 if step == 2 else 1.0).mean().backward()
            opt.step()

    return findings_of(training)


def case_select_and_ignore() -> dict[str, Any]:
    from osler.core.settings import Settings

    def training() -> None:
        model = nn.Linear(4, 4)
        opt = sgd(model)
        opt.zero_grad()
        model(torch.ones(2, 4)).mul(0).log().mean().backward()
        opt.step()

    ignored = findings_of(training, settings=Settings(ignore=["log-of-zero"]))
    selected = findings_of(training, settings=Settings(select=["divide-by-zero"]))
    plain = findings_of(training, settings=Settings(select=["log-of-zero"]))
    return {
        "ignored": [f["rule"] for f in ignored["findings"]],
        "selected": [f["rule"] for f in selected["findings"]],
        "plain": [f["rule"] for f in plain["findings"]],
    }


def case_repeats_are_counted() -> dict[str, Any]:
    """The script skips bad steps by itself, so the same fault comes back at steps 1, 3 and 5."""
    model = nn.Linear(4, 4)
    opt = sgd(model)

    def training() -> None:
        for step in range(6):
            opt.zero_grad()
            (model(torch.randn(6, 4)).pow(2) * float(step % 2 == 0)).sqrt().mean().backward()  # here: repeats
            if step % 2:
                for p in model.parameters():
                    p.data = p.data.clone()
                before = [p.detach().clone() for p in model.parameters()]
                opt.step()
                with torch.no_grad():
                    for p, old in zip(model.parameters(), before):
                        p.copy_(old)
            else:
                opt.step()

    return findings_of(training)


def case_loss_not_recorded() -> dict[str, Any]:
    """A segment whose loss came from elsewhere: its graph is the user's, hooks and all."""
    from osler.training.replay import replay
    from osler.training.tape import Tape

    x = torch.ones(3, requires_grad=True)
    hooks: list[int] = []
    y = x * 2
    y.register_hook(lambda g: hooks.append(1))
    segment = Tape(8, 1).close([y.log().sum()], None, None, keep=False, scaled=False)
    result = replay(segment, {}, [x])
    return {"why_not": result.why_not, "hooks": len(hooks)}


if __name__ == "__main__":
    main(globals())
