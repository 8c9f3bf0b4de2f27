"""Whatever fails inside osler, the training goes on as without it and osler says so in one line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

import osler  # noqa: E402
from osler.training import governor, ledger, looks, recorder, tape, trace  # noqa: E402
from osler.training.monitors import magnitudes, numbers, ownership, units  # noqa: E402

PLACES = [
    (recorder.Recorder, "enter_root"),
    (recorder.Recorder, "leave_root"),
    (recorder.Recorder, "begin_backward"),
    (recorder.Recorder, "before_step"),
    (recorder.Recorder, "after_step"),
    (recorder.Recorder, "_check"),
    (governor.Governor, "steps_done"),
    (tape.Tape, "_of_interest"),
    (tape.Tape, "add"),
    (tape.Tape, "close"),
    (looks.Looks, "begin"),
    (looks.Looks, "after_update"),
    (ledger.Ledger, "emit"),
    (magnitudes.MagnitudeMonitor, "step"),
    (ownership.OwnershipMonitor, "step"),
    (units.UnitMonitor, "trace"),
]


def train(steps: int = 24, spoil: int = -1) -> list[torch.Tensor]:
    """A small training; at step `spoil` its loss takes the logarithm of 0."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(steps):
        x, y = torch.randn(16, 6), torch.randint(0, 2, (16,))
        loss = torch.nn.functional.cross_entropy(model(x), y)
        if step == spoil:
            loss = loss + torch.log(model(x).square().sum() * 0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


@pytest.fixture(scope="module")
def alone() -> Iterator[list[torch.Tensor]]:
    yield train()


@pytest.mark.parametrize(("cls", "name"), PLACES, ids=lambda v: v if isinstance(v, str) else v.__name__)
def test_a_failure_inside_is_said_once_and_changes_nothing(
    cls: type, name: str, alone: list[torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(cls, name, broken)
    with osler.watch() as w:
        weights = train()
    assert all(torch.equal(a, b) for a, b in zip(weights, alone, strict=True))
    said = [note for note in w.report.notes if "goes on unwatched" in note]
    assert len(said) == 1, w.report.notes
    assert "ZeroDivisionError: planted" in said[0]
    assert any("planted" in n.why for n in w.report.not_checked)


def test_a_look_that_fails_is_left_out_and_the_watch_goes_on(
    alone: list[torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(trace.Tracer, "_saw", broken)
    with osler.watch() as w:
        weights = train()
    assert all(torch.equal(a, b) for a, b in zip(weights, alone, strict=True))
    assert not w.report.notes
    assert any(n.what == "close looks" and "planted" in n.why for n in w.report.not_checked)


def test_a_replay_that_fails_leaves_the_training_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = train(spoil=10)

    def broken(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(numbers.NumberMonitor, "trip", broken)
    with osler.watch() as w:
        weights = train(spoil=10)
    assert all(torch.equal(a.isnan(), b.isnan()) for a, b in zip(weights, alone, strict=True))
    assert [note for note in w.report.notes if "replaying the step" in note]
