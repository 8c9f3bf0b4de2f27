"""A script that brings its own instruments: FLOP counter, function mode, device context, hooks, anomaly mode."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.profiler import record_function
from torch.utils.flop_counter import FlopCounterMode


class CountCalls(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))


def main() -> None:
    torch.manual_seed(92)
    torch.set_num_threads(1)
    torch.autograd.set_detect_anomaly(True, check_nan=True)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y))
    train, test = order[:1440], order[1440:]
    with torch.device("cpu"):
        model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))
    shapes, norms = [], []
    forward_hook = model[0].register_forward_hook(lambda module, args, out: shapes.append(tuple(out.shape)))
    backward_hook = model[2].register_full_backward_hook(lambda module, gi, go: norms.append(go[0].norm().item()))
    tensor_hook = model[2].weight.register_hook(lambda grad: grad.clamp(-1, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def step(batch: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[train[batch]]), y[train[batch]])
        loss.backward()
        optimizer.step()
        return loss

    batches = [b for _ in range(5) for b in torch.randperm(len(train)).split(60)]
    counter = CountCalls()
    for i, batch in enumerate(batches):
        if i == 5:
            with FlopCounterMode(display=False) as flops:
                loss = step(batch)
        elif i == 6:
            with record_function("sixth step"):
                loss = step(batch)
        elif i < 20:
            with counter, torch.device("cpu"):
                loss = step(batch)
        else:
            loss = step(batch)
    for hook in (forward_hook, backward_hook, tensor_hook):
        hook.remove()
    print(f"{flops.get_total_flops()} FLOPs a step, {counter.calls} function calls in 13 steps")
    with torch.no_grad():
        accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
    print(f"loss {loss.item():.4f}, test accuracy {accuracy:.3f}")
    assert accuracy >= 0.9 and len(shapes) == len(norms) == len(batches), accuracy


if __name__ == "__main__":
    main()
