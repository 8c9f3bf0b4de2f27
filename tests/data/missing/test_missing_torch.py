"""What only torch can do: gradients of a module, reconstruction and outliers by an autoencoder."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from osler.core.settings.missing import Missing  # noqa: E402
from osler.data.missing.columns import encode, learn, read  # noqa: E402
from osler.data.missing.reconstruct.stack import Stack  # noqa: E402
from osler.data.missing.rows import flag  # noqa: E402
from osler.data.missing.sensitivity import sensitivity  # noqa: E402
from osler.data.need import DataError  # noqa: E402

X = np.random.default_rng(0).normal(size=(400, 4))


def circle(n, seed=0):
    random = np.random.default_rng(seed)
    angle = random.uniform(0, 2 * np.pi, n)
    return np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)], axis=1) + 0.02 * random.normal(size=(n, 3))


def test_gradients_agree_with_the_weights_and_leave_the_module_alone():
    nn = torch.nn
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))
    model.train()
    model[1].eval()
    model[3].weight.requires_grad_(False)
    model(torch.randn(16, 4)).sum().backward()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    grads = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    modes = [m.training for m in model.modules()]
    state = torch.random.get_rng_state()
    found = sensitivity(model, X)
    assert found.method == "gradients"
    assert found.values.sum() == pytest.approx(1)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert [m.training for m in model.modules()] == modes
    assert torch.equal(torch.random.get_rng_state(), state)
    for parameter, grad in zip(model.parameters(), grads, strict=True):
        assert (parameter.grad is None) == (grad is None)
        assert grad is None or torch.equal(parameter.grad, grad)
    line = nn.Linear(4, 1)
    with torch.no_grad():
        line.weight[:] = torch.tensor([[3.0, 0.0, 1.0, 0.0]])
    expected = np.array([3, 0, 1, 0]) * X.std(0)
    assert sensitivity(line, X).values == pytest.approx(expected / expected.sum(), rel=1e-5)


def test_a_module_without_a_gradient_is_permuted():

    class Step(torch.nn.Module):
        def forward(self, x):
            return (x[:, :1] > 0).float()

    assert sensitivity(Step(), X).values == pytest.approx([1, 0, 0, 0])
    with pytest.raises(DataError, match="no gradient"):
        sensitivity(Step(), X, method="gradients")


def test_the_autoencoder_reconstructs_what_no_line_can():
    full = circle(1000)
    masked = full.copy()
    masked[::4, 2] = np.nan
    plans = learn(read(masked))
    state = torch.random.get_rng_state()
    stack = Stack(plans, {2: ["iterative", "vae"]}, 0).fit(masked)
    assert torch.equal(torch.random.get_rng_state(), state)
    found = stack.predict(masked)[2]
    off = {name: np.abs(values - full[:, 2])[::4].mean() / full[:, 2].std() for name, values in found.items()}
    assert off["vae"] < 0.35
    assert off["iterative"] > 0.7
    again = Stack(plans, {2: ["vae"]}, 0).fit(masked).predict(masked)[2]["vae"]
    assert np.array_equal(again, found["vae"])
    # a row's values do not depend on the rows beside it
    assert np.allclose(stack.predict(masked[:5])[2]["vae"], found["vae"][:5], atol=1e-5)


def test_the_autoencoder_fills_categories_too():
    random = np.random.default_rng(0)
    kind = random.choice(["a", "b", "c"], 600)
    size = np.select([kind == "a", kind == "b"], [1.0, 2.0], 3.0) + 0.1 * random.normal(size=600)
    data = np.array([*zip(kind, size)], dtype=object)
    data[::5, 0] = None
    columns = read(data)
    plans = learn(columns)
    codes = encode(columns, plans)
    done = Stack(plans, {0: ["vae"]}, 0).fit(codes).predict(codes)[0]["vae"]
    assert np.allclose(done.sum(1), 1, atol=1e-5)
    assert np.mean([plans[0].categories[c] == k for c, k in zip(done.argmax(1), kind)]) > 0.95


def test_the_autoencoder_finds_rows_that_no_column_betrays():
    reference, current = circle(4000), circle(1000, seed=1)
    current[:60, 2] = current[np.random.default_rng(0).permutation(60), 2] * -1
    wrong = np.abs(current[:, 2] - (current[:, 0] ** 2 - current[:, 1] ** 2)) > 0.6
    by = {f.scorer: f for f in flag(reference, current, Missing(reconstruction="autoencoder"))}
    hit = by["reconstruction"].hit
    assert hit[wrong].mean() > 0.8
    assert hit[60:].sum() <= 5
    assert by["reconstruction"].noticed > 0.5
