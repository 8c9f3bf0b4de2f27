"""Profiles are counted, merged, saved and read back; what is no profile is one clear line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from osler.core.settings import Data, Settings
from osler.data.drift.grid import Grid
from osler.data.drift.profile import Profile, build_profile
from osler.data.drift.store import KEY, is_profile
from osler.data.need import DataError


def table(rows: int = 3000, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "x": pa.array(rng.normal(size=rows), mask=rng.random(rows) < 0.1),
            "k": rng.integers(0, 5, rows),
            "c": rng.choice(["a", "b"], rows),
            "t": pa.array(np.arange(rows), pa.timestamp("s")),
            "nested": [[1]] * rows,
        }
    )


def same(one: Profile, two: Profile) -> bool:
    return one.to_arrow().equals(two.to_arrow(), check_metadata=True)


def test_saved_and_read_back(tmp_path: Path) -> None:
    profile = build_profile(table())
    path = tmp_path / "reference.profile"
    profile.save(path)
    assert same(Profile.load(path), profile)
    assert is_profile(path)
    assert same(Profile.from_arrow(profile.to_arrow()), profile)
    assert [s.form for s in profile.columns.values()] == ["number", "number", "category", "number", "none"]


def test_a_stored_profile_takes_a_few_kb_a_column(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    profile = build_profile({f"f{i}": rng.normal(size=20_000) for i in range(20)})
    profile.save(tmp_path / "p")
    assert (tmp_path / "p").stat().st_size / 20 < 9000


def test_parts_merge_to_the_whole() -> None:
    whole = table()
    reference = build_profile(whole)
    parts = [build_profile(whole.slice(i * 1000, 1000), profile_of=reference) for i in range(3)]
    merged = parts[0] + parts[1] + parts[2]
    assert merged.rows == reference.rows == 3000
    for name, state in reference.columns.items():
        other = merged.columns[name]
        assert (state.rows, state.missing) == (other.rows, other.missing)
        if isinstance(state.state, Grid):
            assert np.array_equal(state.state.counts, other.grid.counts)
    assert merged.columns["c"].categories.counts == reference.columns["c"].categories.counts
    assert parts[0].rows == 1000


def test_profiles_of_other_columns_or_edges_do_not_merge() -> None:
    with pytest.raises(DataError, match="different columns"):
        build_profile({"a": np.arange(9.0)}) + build_profile({"b": np.arange(9.0)})
    with pytest.raises(DataError, match=r"'a'.*same edges"):
        build_profile({"a": np.arange(9.0)}) + build_profile({"a": np.arange(8.0)})


def test_a_stream_is_read_once(tmp_path: Path) -> None:
    data = table()
    reader = pa.RecordBatchReader.from_batches(data.schema, data.to_batches(max_chunksize=500))
    profile = build_profile(reader)
    assert profile.rows == 3000
    assert profile.columns["x"].grid.n == build_profile(data).columns["x"].grid.n


def test_values_are_not_in_a_profile_unless_asked_for(tmp_path: Path) -> None:
    data = {"name": ["Ann Smith", "Bob Jones"] * 50}
    build_profile(data).save(tmp_path / "p")
    assert b"Ann" not in (tmp_path / "p").read_bytes()
    shown = build_profile(data, settings=Settings(data=Data(show_values=True)))
    assert "Ann Smith" in Profile.from_arrow(shown.to_arrow()).columns["name"].categories.names.values()


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        ({"columns": ["xx"]}, "did you mean 'x'|has no column 'xx'"),
        ({"categorical": ["t"]}, "is time, it has no categories"),
        ({"numeric": ["c"]}, "is category, not numbers"),
        ({"numeric": ["nested"]}, "is nested, not numbers"),
        ({"categorical": ["k"], "numeric": ["k"]}, "as a category and as a number"),
        ({"columns": ["x"], "categorical": ["k"]}, "not among the columns"),
    ],
)
def test_wishes_that_make_no_sense_are_one_clear_line(wish: dict[str, list[str]], why: str) -> None:
    with pytest.raises(DataError, match=why) as caught:
        build_profile(table(50), **wish)
    assert "\n" not in str(caught.value)


def damaged(kind: str, path: Path) -> None:
    """Files that call themselves profiles and are none."""
    good = build_profile(table(200))
    arrow = good.to_arrow()
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "noise":
        path.write_bytes(np.random.default_rng(0).bytes(5000))
    elif kind == "cut":
        good.save(path)
        path.write_bytes(path.read_bytes()[:-200])
    elif kind == "flipped":
        good.save(path)
        raw = bytearray(path.read_bytes())
        raw[200:260] = bytes(60)
        path.write_bytes(raw)
    elif kind == "plain":
        pq.write_table(table(5), path)
    elif kind == "header":
        pq.write_table(arrow.replace_schema_metadata({KEY: b"{]"}), path)
    elif kind == "newer":
        pq.write_table(arrow.replace_schema_metadata({KEY: json.dumps({"version": 99, "rows": 1}).encode()}), path)
    elif kind == "kind":
        at = arrow.schema.get_field_index("kind")
        pq.write_table(arrow.set_column(at, "kind", pa.array(["evil"] * arrow.num_rows)), path)
    elif kind == "rows":
        at = arrow.schema.get_field_index("rows")
        pq.write_table(arrow.set_column(at, "rows", pa.array([-1] * arrow.num_rows)), path)
    elif kind == "nothing":
        at = arrow.schema.get_field_index("edges")
        pq.write_table(
            arrow.set_column(at, arrow.schema.field(at), pa.nulls(arrow.num_rows, arrow.schema.field(at).type)), path
        )
    elif kind == "twice":
        pq.write_table(pa.concat_tables([arrow, arrow]).replace_schema_metadata(arrow.schema.metadata), path)


@pytest.mark.parametrize(
    "kind",
    ["empty", "noise", "cut", "flipped", "plain", "header", "newer", "kind", "rows", "nothing", "twice", "absent"],
)
def test_a_hostile_file_is_one_clear_line(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.profile"
    damaged(kind, path)
    with pytest.raises(DataError) as caught:
        Profile.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_a_profile(tmp_path: Path) -> None:
    pq.write_table(table(5), tmp_path / "data.parquet")
    (tmp_path / "data.csv").write_text("a\n1\n")
    build_profile(table(50)).save(tmp_path / "p.parquet")
    found = [is_profile(tmp_path / n) for n in ("data.parquet", "data.csv", "p.parquet", "none", ".")]
    assert found == [False, False, True, False, False]
    assert not is_profile([1])
