"""Ids of two sources: missing, extra, repeated, in another form, of another entity."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sources_builders import BASE, DAY, S, events, instants, kinds, noise, only, table

from osler.core.finding import Severity
from osler.data.need import DataError
from osler.data.sources import check_sources

N = 2000
IDS = np.arange(N) + 10


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def compare(left, right, **options):
    return check_sources([left, right], names=["a", "b"], **{"id": "id", **options})


def ids(values: object) -> pa.Table:
    return pa.table({"id": values})


def test_missing_ids_above_the_floor_are_counted_and_placed(rng):
    keep = np.ones(N, bool)
    keep[[3, 5, *range(100, 298)]] = False
    found = only(compare(ids(IDS), ids(IDS[keep])), "missing")
    assert found.severity is Severity.WARNING
    assert (found.evidence["count"], found.evidence["first_rows"]) == (200, [3, 5, 100, 101, 102])
    assert compare(ids(IDS), ids(IDS[40:])).findings == []


def test_a_subset_on_the_left_is_a_left_join(rng):
    report = compare(ids(IDS[::10]), ids(IDS))
    assert kinds(report) == [] and kinds(report, Severity.INFO) == ["extra"]


def test_both_sides_lack_ids():
    assert sorted(kinds(compare(ids(IDS[:1500]), ids(IDS[500:])))) == ["extra", "missing"]


def test_a_hole_in_the_reference(rng):
    seen = events(rng, N)
    whole = table(IDS, seen)
    there = (seen < BASE + 10 * DAY) | (seen > BASE + 13 * DAY)
    found = only(compare(whole.filter(pa.array(there)), whole, time="t"), "extra")
    assert found.severity is Severity.WARNING and found.evidence["within_s"] < 3 * 86400


def test_ids_outside_the_common_period_are_not_missing(rng):
    seen = events(rng, N)
    report = compare(table(IDS, seen), table(IDS[:1200], (seen + noise(rng, N))[:1200]), time="t")
    assert kinds(report) == []
    assert only(report, "coverage").evidence["count"] == 800


def test_rows_written_twice(rng):
    seen = events(rng, N)
    again = np.concatenate([np.arange(N), np.arange(50, 150)])
    found = only(compare(table(IDS, seen), table(IDS[again], seen[again]), time="t"), "duplicate")
    assert found.evidence["count"] == 100 and found.evidence["first_rows"][0] == N
    assert only(compare(ids(IDS), pa.table({"id": IDS[again], "v": again})), "duplicate").severity is Severity.WARNING


def test_a_second_event_of_the_same_id_is_no_duplicate(rng):
    seen = events(rng, N)
    later = np.concatenate([seen, seen[:150] + 5 * DAY])
    report = compare(table(IDS, seen), table(np.concatenate([IDS, IDS[:150]]), later), time="t")
    assert kinds(report) == []


def test_foreign_keys_repeat(rng):
    orders = rng.choice(IDS[:1500], 9000)
    report = compare(table(IDS, events(rng, N)), table(orders, events(rng, 9000)), time="t")
    assert kinds(report) == []
    orphans = np.concatenate([orders, np.arange(10_000, 10_300)])
    assert kinds(compare(ids(IDS), ids(orphans))) == ["extra"]
    assert kinds(compare(ids(orphans), ids(IDS[:1000]))) == ["missing"]


def test_series_with_copied_rows(rng):
    device, at = np.repeat(np.arange(20), 100), np.tile(BASE + np.arange(100) * S, 20)
    value = rng.normal(size=2000)
    again = np.concatenate([np.arange(2000), np.arange(300, 400)])
    right = pa.table({"id": device[again], "t": instants(at[again]), "v": value[again]})
    found = only(compare(table(device, at), right, time="t"), "duplicate")
    assert found.evidence["count"] == 100


@pytest.mark.parametrize(
    ("left", "right", "causes"),
    [
        ([f"{i:06d}" for i in IDS], [str(i) for i in IDS], "zero-padding"),
        ([f"{i:06d}" for i in IDS], IDS, ["type", "zero-padding"]),
        ([f"k{i}x" for i in IDS], [f" k{i}x\t" for i in IDS], "spaces"),
        ([f"k{i}x" for i in IDS], [f"K{i}X" for i in IDS], "case"),
        ([f"k{i}x" for i in IDS], [f"K{i}X " for i in IDS], ["spaces", "case"]),
        ([f"{i}" for i in IDS], [f"{i}.0" for i in IDS], "float-text"),
        ([f"{i:04x}-{i:04x}" for i in IDS], [f"{i:04x}{i:04x}" for i in IDS], "separators"),
        ([f"user_{i}" for i in IDS], [f"{i}" for i in IDS], "prefix"),
        ([f"Ａ{i}" for i in IDS], [f"A{i}" for i in IDS], "unicode"),
    ],
)
def test_the_form_that_keeps_ids_apart(left, right, causes):
    report = compare(ids(left), ids(right))
    found = only(report, "format")
    assert found.evidence["cause"] == causes
    assert found.evidence["count"] == N and found.severity is Severity.ERROR
    assert kinds(report) == ["format"]


def test_types_that_a_join_does_not_compare():
    assert only(compare(ids(IDS), ids([str(i) for i in IDS])), "type").severity is Severity.ERROR
    assert only(compare(ids(IDS), ids(IDS.astype(float))), "type").severity is Severity.INFO
    assert compare(ids(pa.array(IDS, pa.int32())), ids(pa.array(IDS, pa.uint16()))).findings == []
    assert compare(ids([str(i) for i in IDS]), ids(pa.array([str(i) for i in IDS]).dictionary_encode())).findings == []


def test_ids_that_went_through_float64():
    large = 2**60 + np.random.default_rng(0).permutation(10**7)[:N] * 97
    found = only(compare(ids(large), ids(large.astype(float))), "format")
    assert "float-rounding" in found.evidence["cause"]


def test_unsigned_ids_above_the_signed_range():
    high = np.arange(N, dtype=np.uint64) + np.uint64(2**63)
    assert compare(ids(high), ids(high)).findings == []
    # the same bits, and not the same ids
    assert "missing" in kinds(compare(ids(high), ids(high.view(np.int64))))


def test_codes_in_which_case_matters(rng):
    letters = np.array(list("abcdefghijABCDEFGHIJ"))
    codes = np.unique(["".join(c) for c in rng.choice(letters, (N, 5))])
    report = compare(ids(codes), ids(codes[: int(len(codes) * 0.9)]))
    assert kinds(report) == ["missing"]


def test_several_columns_and_names_that_differ():
    left = pa.table({"site": IDS % 7, "no": IDS})
    right = pa.table({"place": IDS % 7, "number": IDS})
    assert check_sources([left, right], id=["site=place", "no=number"]).findings == []
    assert check_sources([left, right], id={0: ["site", "no"], 1: ["place", "number"]}).findings == []
    shifted = pa.table({"place": (IDS + 1) % 7, "number": IDS})
    assert "missing" in kinds(check_sources([left, shifted], id="site=place,no=number"))


def test_an_id_that_first_names_one_entity_and_then_another(rng):
    who = np.repeat(np.arange(300), 6)
    when = BASE + np.sort(rng.integers(0, 300 * 86400, (300, 6)), axis=1).ravel() * S
    born, blood = np.repeat(rng.integers(1930, 2010, 300), 6), np.repeat(rng.integers(0, 8, 300), 6)
    left = table(np.arange(300), when[::6])
    right = {"id": who, "t": instants(when), "born": born.copy(), "blood": blood.copy()}
    assert kinds(compare(left, pa.table(right), time="t")) == []
    for person in range(4):
        right["born"][person * 6 + 3 : person * 6 + 6] += 11
        right["blood"][person * 6 + 3 : person * 6 + 6] = (blood[person * 6] + 3) % 8
    found = only(compare(left, pa.table(right), time="t"), "reuse")
    assert found.evidence["count"] == 4 and set(found.evidence["attributes"]) == {"born", "blood"}


def test_a_move_changes_city_and_post_code_and_is_no_reuse(rng):
    who = np.repeat(np.arange(300), 6)
    city = np.repeat(rng.integers(0, 40, 300), 6)
    for person in range(5):
        city[person * 6 + 3 : person * 6 + 6] = (city[person * 6] + 1) % 40
    right = pa.table(
        {"id": who, "city": city, "code": city * 100 + 7, "born": np.repeat(rng.integers(1930, 2010, 300), 6)}
    )
    assert kinds(compare(ids(np.arange(300)), right)) == []


def test_the_same_id_with_other_attributes_in_the_other_source(rng):
    a, b = rng.integers(0, 50, N), rng.integers(0, 9, N)
    left = pa.table({"id": IDS, "a": a, "b": b})
    c, d = a.copy(), b.copy()
    c[:6], d[:6] = (c[:6] + 5) % 50, (d[:6] + 2) % 9
    assert only(compare(left, pa.table({"id": IDS, "a": c, "b": d})), "reuse").evidence["first_rows"] == [0, 1, 2, 3, 4]
    assert kinds(compare(left, pa.table({"id": IDS, "a": c, "b": b}))) == []


def test_no_raw_value_enters_the_report(rng):
    left = ids([f"secret-{i:06d}" for i in IDS])
    right = ids([f"SECRET-{i:06d}" for i in IDS[:1500]])
    report = compare(left, right)
    assert report.findings and "ecret" not in str(report.to_dict({})).replace("secret_", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"id": "idd"}, "did you mean 'id'"),
        ({"id": "id=x=y"}, "3 names for 2 sources"),
        ({"id": ()}, "name what the sources share"),
        ({"tolerance": "fast"}, "the tolerance 'fast'"),
        ({"tolerance": "-1s"}, "negative"),
        ({"rates": ["1Hz"]}, "one rate a source"),
        ({"rates": {"z": "1Hz"}}, "names a source 'z'"),
        ({"id": {"z": "id"}}, "names a source 'z'"),
        ({"time": "id,id"}, "one column a source"),
        ({"id": 5}, "names of columns"),
    ],
)
def test_bad_arguments_are_one_line(arguments, words):
    with pytest.raises(DataError, match=None) as caught:
        compare(ids(IDS), ids(IDS), **arguments)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_fewer_than_two_sources():
    with pytest.raises(DataError, match="two or more"):
        check_sources([ids(IDS)], id="id")
