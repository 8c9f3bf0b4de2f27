"""Entities on both sides."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from osler.core.finding import Finding, Severity
from osler.core.report import Report
from osler.data.need import DataError
from osler.data.splits import check_splits

RNG = np.random.default_rng(0)


def table(groups: object) -> pa.Table:
    column = pa.array(groups) if not isinstance(groups, pa.Array) else groups
    return pa.table({"x": RNG.normal(size=len(column)), "patient": column})


def overlap(report: Report) -> list[Finding]:
    return [f for f in report.findings if f.rule == "split-group-overlap"]


def test_patients_on_both_sides() -> None:
    train, fresh = table(RNG.integers(0, 80, 800)), table(np.repeat(np.arange(70, 90), 10))
    (finding,) = overlap(check_splits(train, fresh, group="patient"))
    assert finding.severity is Severity.ERROR
    assert finding.message.startswith("10 of 20 groups of evaluation in patient are in training too, with 100 of 200")
    assert finding.where.column == "patient"


def test_patients_apart() -> None:
    report = check_splits(table(RNG.integers(0, 80, 800)), table(RNG.integers(80, 99, 200)), group=["patient"])
    assert not overlap(report)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([1, 2, 3] * 9, [3.0, 4.0, 5.0] * 5),
        (["a", "b"] * 9, pa.array(["b", "c"] * 5).dictionary_encode()),
        (pa.array([1, 2, None] * 9), pa.array([2, None, 9] * 5, pa.uint8())),
    ],
)
def test_types_and_missing_values(left: object, right: object) -> None:
    report = check_splits(table(left), table(right), group="patient", near=False)
    (finding,) = overlap(report)
    assert finding.evidence["groups_on_both_sides"] == 1


def test_missing_groups_are_no_group_and_are_said() -> None:
    report = check_splits(table([None, "a"] * 20), table([None, "b"] * 10), group="patient")
    assert not overlap(report)
    assert any("30 rows without a value in patient" in n.why for n in report.not_checked)


def test_text_beside_numbers_is_refused() -> None:
    with pytest.raises(DataError, match=r"group column 'patient' is category in .* and integer in"):
        check_splits(table(["1", "2"]), table([1, 2]), group="patient")


def test_a_column_that_looks_like_an_entity_is_named_where_none_was_given() -> None:
    fresh = pa.table({"x": RNG.normal(size=50), "patient_id": RNG.integers(0, 9, 50), "age": RNG.normal(size=50)})
    train = pa.table({"x": RNG.normal(size=90), "patient_id": RNG.integers(0, 9, 90), "age": RNG.normal(size=90)})
    report = check_splits(train, fresh)
    (open_,) = [n for n in report.not_checked if n.what == "split-group-overlap"]
    assert open_.why == "no group column was named; patient_id may be one"


def test_an_unknown_group_is_refused() -> None:
    with pytest.raises(DataError, match="no column 'pateint'; did you mean 'patient'"):
        check_splits(table([1]), table([2]), group="pateint")
