"""`ShiftMonitor`: tiers, callbacks, the gate, and what is saved."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

import numpy as np
import pytest

from osler.core.settings import Settings
from osler.data.need import DataError
from osler.data.shift import Frozen, Gate, ShiftEvent, ShiftMonitor, Tier

FAST = dataclasses.replace(
    Settings(), shift=dataclasses.replace(Settings().shift, permutations=100, random_features=256)
)
RNG = np.random.default_rng(0)
REFERENCE = RNG.standard_normal((4000, 6))


def rows(seed: int, n: int, moved: float = 0.0) -> np.ndarray:
    out = np.random.default_rng(seed).standard_normal((n, 6))
    out[:, 0] += moved
    return out


def test_silent_then_alert_then_freeze_then_reset() -> None:
    events: list[ShiftEvent] = []
    frozen: list[ShiftEvent] = []
    monitor = ShiftMonitor(REFERENCE, settings=FAST, on_alert=events.append, on_freeze=frozen.append)
    assert monitor.update(rows(1, 999)) is Tier.SILENT
    assert monitor.report().not_checked[-1].what == "covariate-shift"
    assert monitor.update(rows(2, 1001)) is Tier.SILENT
    assert not monitor.report().findings
    assert monitor.update(rows(3, 1000, 0.4)) is Tier.ALERT
    assert len(events) == 1
    assert monitor.gate.open
    assert monitor.update(rows(4, 2000, 2.0)) is Tier.FREEZE
    assert len(frozen) == 1
    assert not monitor.gate.open
    with pytest.raises(Frozen, match="KL"):
        monitor.gate.require()
    assert monitor.report().findings[0].evidence["tier"] == "freeze"
    assert monitor.update(rows(5, 3000)) is Tier.SILENT
    assert not monitor.gate.open  # a model comes back by decision
    monitor.reset()
    assert monitor.gate.open
    assert monitor.tier is Tier.SILENT


def test_batch_sizes_make_no_difference() -> None:
    data = np.concatenate([rows(1, 1500), rows(2, 1500, 0.6)])
    one, other = ShiftMonitor(REFERENCE, settings=FAST), ShiftMonitor(REFERENCE, settings=FAST)
    one.update(data)
    for part in np.array_split(data, 77):
        other.update(part)
    curves = [[s.values for s in m.report().series] for m in (one, other)]
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-4, atol=1e-4)


def test_a_callback_that_raises_does_not_reach_the_service() -> None:
    def broken(event: ShiftEvent) -> None:
        raise RuntimeError("out of order")

    monitor = ShiftMonitor(REFERENCE, settings=FAST, on_freeze=broken)
    monitor.update(rows(1, 1000, 3.0))
    assert monitor.callback_errors == 1
    assert not monitor.gate.open


def test_saved_and_loaded(tmp_path: Path) -> None:
    monitor = ShiftMonitor(REFERENCE, settings=FAST)
    monitor.update(rows(1, 1000, 3.0))
    monitor.save(tmp_path / "monitor.npz")
    with np.load(tmp_path / "monitor.npz", allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)
    again = ShiftMonitor.load(tmp_path / "monitor.npz")
    assert not again.gate.open
    assert again.rows == 1000
    again.reset()
    fresh = ShiftMonitor(REFERENCE, settings=FAST)
    for m in (again, fresh):
        m.update(rows(2, 1000, 0.3))
    assert [s.values for s in again.report().series] == [s.values for s in fresh.report().series]


@pytest.mark.parametrize("content", [b"", b"not a file", b"PK\x03\x04broken"])
def test_a_damaged_file_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "monitor.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        ShiftMonitor.load(path)
    with pytest.raises(DataError, match="does not exist"):
        ShiftMonitor.load(tmp_path / "none.npz")


def test_a_pickle_is_never_run(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError):
        ShiftMonitor.load(tmp_path / "a.npy")
    with pytest.raises(DataError, match="cannot be read"):
        ShiftMonitor(tmp_path / "a.npy")


def test_bad_rows_and_bad_batches() -> None:
    monitor = ShiftMonitor(REFERENCE, settings=FAST)
    batch = rows(1, 100)
    batch[:3, 2] = np.nan
    monitor.update(batch)
    assert (monitor.rows, monitor.skipped) == (97, 3)
    monitor.update(batch[5])  # one row
    assert monitor.rows == 98
    monitor.update(np.empty((0, 6)))
    for wrong in (np.zeros((5, 7)), np.array([["x"] * 6])):
        with pytest.raises(DataError):
            monitor.update(wrong)
    assert monitor.rows == 98


def test_bad_arguments() -> None:
    for arguments in ({"every": 300}, {"window": 3000}, {"every": 0}):
        with pytest.raises(DataError):
            ShiftMonitor(REFERENCE, settings=FAST, **arguments)
    with pytest.raises(DataError, match="no feature"):
        ShiftMonitor(np.ones((3000, 2)), settings=FAST)


def test_tables_are_matched_by_name_and_constants_left_out() -> None:
    table = {"b": REFERENCE[:, 1], "a": REFERENCE[:, 0], "one": np.ones(4000)}
    monitor = ShiftMonitor(table, settings=FAST)
    assert monitor.reference.names == ("b", "a")
    fresh = rows(1, 1000)
    assert monitor.update({"a": fresh[:, 0], "b": fresh[:, 1], "more": fresh[:, 2]}) is Tier.SILENT
    assert monitor.update({"a": fresh[:, 0] + 2, "b": fresh[:, 1]}) is Tier.FREEZE
    with pytest.raises(DataError, match="no column 'b'"):
        monitor.update({"a": fresh[:, 0]})
    matrix = np.concatenate([np.ones((4000, 1)), REFERENCE], axis=1)
    assert (
        ShiftMonitor(matrix, settings=FAST).update(np.concatenate([np.ones((1000, 1)), fresh], axis=1)) is Tier.SILENT
    )


def test_the_gate_is_one_attribute_and_changes_as_a_whole() -> None:
    gate = Gate()
    assert isinstance(gate.open, bool)
    closed = []
    threads = [threading.Thread(target=lambda i=i: closed.append(gate.close(f"thread {i}"))) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(closed) == 1
    first = gate.reason
    gate.close("later")
    assert gate.reason == first
    assert gate.reopen()
    assert not gate.reopen()
    gate.require()


def test_updates_from_several_threads_are_all_counted() -> None:
    monitor = ShiftMonitor(REFERENCE, settings=FAST)
    threads = [threading.Thread(target=lambda i=i: [monitor.update(rows(i, 37)) for _ in range(20)]) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert monitor.rows == 4 * 20 * 37
