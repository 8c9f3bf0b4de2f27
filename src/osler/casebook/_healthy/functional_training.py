"""torch.func: an ensemble of four networks trained at once with vmap over grad; updates are plain dictionaries."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

MEMBERS, RATE, MOMENTUM = 4, 0.1, 0.9


def main() -> None:
    torch.manual_seed(47)
    torch.set_num_threads(1)
    cancer = load_breast_cancer()
    x = torch.tensor(cancer.data, dtype=torch.float32)
    y = torch.tensor(cancer.target)
    order = torch.randperm(len(y))
    train, test = order[:430], order[430:]
    x = (x - x[train].mean(0)) / x[train].std(0)

    members = [nn.Sequential(nn.Linear(30, 16), nn.Tanh(), nn.Linear(16, 2)) for _ in range(MEMBERS)]
    parameters, buffers = stack_module_state(members)
    parameters = {k: v.detach() for k, v in parameters.items()}
    skeleton = members[0].to("meta")

    def loss_of(params, bufs, inputs, labels):
        return F.cross_entropy(functional_call(skeleton, (params, bufs), (inputs,)), labels)

    step_all = vmap(grad_and_value(loss_of), in_dims=(0, 0, 0, 0))
    velocity = {k: torch.zeros_like(v) for k, v in parameters.items()}
    for step in range(120):
        rows = train[torch.randint(len(train), (MEMBERS, 32))]  # each member its own batch
        gradients, losses = step_all(parameters, buffers, x[rows], y[rows])
        velocity = {k: MOMENTUM * velocity[k] + g for k, g in gradients.items()}
        parameters = {k: v - RATE * velocity[k] for k, v in parameters.items()}
        if step % 30 == 0:
            print(f"step {step}: losses {[round(v, 3) for v in losses.tolist()]}")

    predict = vmap(lambda p, b: functional_call(skeleton, (p, b), (x[test],)).softmax(-1))
    probability = predict(parameters, buffers).mean(0)
    accuracy = (probability.argmax(1) == y[test]).float().mean().item()
    print(f"ensemble accuracy {accuracy:.3f}")
    assert accuracy >= 0.92, accuracy


if __name__ == "__main__":
    main()
