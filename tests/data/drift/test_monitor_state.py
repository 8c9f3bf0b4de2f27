"""A drift monitor saved, continued after a kill, and merged."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from osler.core.settings import Settings
from osler.data.drift.monitor import DriftMonitor
from osler.data.drift.profile import build_profile
from osler.data.need import DataError

HOUR = 3600 * 10**9
START = 1_767_225_600 * 10**9


def rows(seed: int, n: int, moved: float = 0.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"a": rng.standard_normal(n) + moved, "c": rng.choice(["x", "y", "z"], n)}


REFERENCE = rows(0, 4000)
SEQUENTIAL = dataclasses.replace(Settings(), monitor=dataclasses.replace(Settings().monitor, sequential=True))


def sliced(data: dict[str, np.ndarray], start: int, stop: int) -> dict[str, np.ndarray]:
    return {name: values[start:stop] for name, values in data.items()}


def test_saved_and_continued_as_if_nothing_had_been(tmp_path: Path) -> None:
    data = rows(1, 5000, 0.25)
    whole = DriftMonitor(REFERENCE, window=1000, every=200, settings=SEQUENTIAL)
    expected = whole.update(data)
    monitor = DriftMonitor(REFERENCE, window=1000, every=200, settings=SEQUENTIAL)
    got = monitor.update(sliced(data, 0, 2345))
    monitor.save(tmp_path / "state")
    again = DriftMonitor.load(tmp_path / "state")
    got += again.update(sliced(data, 2345, 5000))
    assert got == expected
    assert again.report().to_dict({}) == whole.report().to_dict({})
    assert again.sequential is not None
    assert whole.sequential is not None
    for name, test in whole.sequential.tests.items():
        other = again.sequential.tests[name]
        assert other.urn.tolist() == test.urn.tolist()
        assert other.log_e == pytest.approx(test.log_e)  # sums in another order


def test_event_time_is_continued(tmp_path: Path) -> None:
    monitor = DriftMonitor(REFERENCE, window="2h", every="1h", time="at")
    monitor.update({**rows(1, 300), "at": np.full(300, START).astype("datetime64[ns]")})
    monitor.save(tmp_path / "state")
    again = DriftMonitor.load(tmp_path / "state")
    for m in (monitor, again):
        m.update({**rows(2, 300), "at": np.full(300, START + HOUR).astype("datetime64[ns]")})
        (verdict,) = m.update({**rows(3, 300), "at": np.full(300, START + 3 * HOUR).astype("datetime64[ns]")})[:1]
        assert verdict.rows == 600


def test_no_value_and_no_pickle_in_the_file(tmp_path: Path) -> None:
    data = rows(1, 500)
    data["c"][:] = "secret-name"
    monitor = DriftMonitor(data, window=200, settings=SEQUENTIAL)
    monitor.update(data)
    monitor.save(tmp_path / "state")
    table = pq.read_table(tmp_path / "state")
    raw = str(table.to_pydict()) + str(table.schema.metadata)
    assert "secret-name" not in raw


@pytest.mark.parametrize("content", [b"", b"PAR1", b"not a file"])
def test_damaged_files_are_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state").write_bytes(content)
    with pytest.raises(DataError, match="no drift monitor") as caught:
        DriftMonitor.load(tmp_path / "state")
    assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="no such file"):
        DriftMonitor.load(tmp_path / "none")
    build_profile(REFERENCE).save(tmp_path / "profile")
    with pytest.raises(DataError, match="no drift monitor"):
        DriftMonitor.load(tmp_path / "profile")


def test_a_state_whose_header_lies_is_refused(tmp_path: Path) -> None:
    DriftMonitor(REFERENCE, window=200).save(tmp_path / "state")
    table = pq.read_table(tmp_path / "state")
    header = table.schema.metadata[b"osler.drift-monitor"]
    for old, new in (
        (b'"step": 200', b'"step": 300'),
        (b'"version": 1', b'"version": 9'),
        (b'"rows": 0', b'"rows": "x"'),
    ):
        assert old in header
        broken = table.replace_schema_metadata({b"osler.drift-monitor": header.replace(old, new)})
        pq.write_table(broken, tmp_path / "broken")
        with pytest.raises(DataError):
            DriftMonitor.load(tmp_path / "broken")
    pq.write_table(pa.table({"x": [1]}).replace_schema_metadata({b"osler.drift-monitor": header}), tmp_path / "broken")
    with pytest.raises(DataError):
        DriftMonitor.load(tmp_path / "broken")


def test_saving_where_one_cannot() -> None:
    with pytest.raises(DataError, match="cannot be written"):
        DriftMonitor(REFERENCE, window=200).save("/nonexistent/folder/state")


def test_a_failing_autosave_does_not_reach_the_service() -> None:
    monitor = DriftMonitor(REFERENCE, window=200, autosave="/nonexistent/folder/state")
    assert len(monitor.update(rows(1, 400))) == 2
    assert monitor.callback_errors == 1


KILLED = """
import sys, numpy as np
from osler.data.drift.monitor import DriftMonitor
rng = np.random.default_rng(0)
reference = {"a": rng.standard_normal(4000)}
monitor = DriftMonitor(reference, window=200, autosave=sys.argv[1])
print("ready", flush=True)
i = 0
while True:
    monitor.update({"a": rng.standard_normal(100)})
    i += 1
    if i == 20:
        print("go", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_killed_process_is_continued_from_its_last_save(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert process.stdout.readline() == "go\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
    monitor = DriftMonitor.load(path)
    seen = monitor.rows
    assert seen >= 1800
    assert seen % 200 == 0
    rng = np.random.default_rng(1)
    verdicts = monitor.update({"a": rng.standard_normal(600)})
    assert [v.start for v in verdicts] == [seen, seen + 200, seen + 400]


def test_parts_that_only_collect_are_merged_and_judged(tmp_path: Path) -> None:
    profile = build_profile(REFERENCE)
    rng = np.random.default_rng(0)
    n = 3000
    at = START + np.sort(rng.integers(0, 6 * HOUR, n))
    data = rows(2, n)
    data["a"][at >= START + 2 * HOUR] += 1
    alone = DriftMonitor(profile, window="1h")
    expected = alone.update(data, time=at) + alone.close()
    shard = rng.integers(0, 3, n)
    for i in range(3):
        part = DriftMonitor(profile, window="1h", collect=True)
        for chunk in np.array_split(np.flatnonzero(shard == i), 5):
            assert part.update({k: v[chunk] for k, v in data.items()}, time=at[chunk]) == []
        part.save(tmp_path / f"part-{i}")
    merged = DriftMonitor(profile, window="1h")
    for i in range(3):
        merged.merge(DriftMonitor.load(tmp_path / f"part-{i}"))
    got = merged.close()
    assert got == expected
    assert [g.effects() for g in got] == [e.effects() for e in expected]
    assert merged.rows == n
    assert merged.resample


def test_what_cannot_be_merged() -> None:
    profile = build_profile(REFERENCE)
    with pytest.raises(DataError, match="no common order"):
        DriftMonitor(profile, window=200).merge(DriftMonitor(profile, window=200))
    with pytest.raises(DataError, match="same window"):
        DriftMonitor(profile, window="1h").merge(DriftMonitor(profile, window="2h"))
    with pytest.raises(DataError, match="one stream"):
        DriftMonitor(profile, window="1h").merge(DriftMonitor(REFERENCE, window="1h", settings=SEQUENTIAL))
    other = DriftMonitor(rows(9, 3000), window="1h")
    other.update(rows(1, 200), time=START)
    with pytest.raises(DataError, match="same edges"):
        DriftMonitor(profile, window="1h").merge(other)


def test_panes_that_are_closed_take_no_more() -> None:
    profile = build_profile(REFERENCE)
    one, other = (DriftMonitor(profile, window="1h") for _ in range(2))
    one.update(rows(1, 200), time=START)
    one.update(rows(2, 200), time=START + 2 * HOUR)
    other.update(rows(3, 50), time=START)
    one.merge(other)
    assert one.clock.late == 50  # type: ignore[union-attr]


def test_held_panes_are_bounded() -> None:
    few = dataclasses.replace(Settings(), monitor=dataclasses.replace(Settings().monitor, max_panes=3))
    monitor = DriftMonitor(REFERENCE, window="1h", collect=True, settings=few)
    for i in range(5):
        monitor.update(rows(i, 50), time=START + i * HOUR)
    assert len(monitor.panes) == 3
    assert any(n.what == "2 panes" for n in monitor.report().not_checked)
