"""Findings, their places, severities, keys."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.core.finding import Confidence, Finding, Severity, Where

WHERE = st.builds(
    Where,
    file=st.none() | st.text(),
    line=st.none() | st.integers(1, 10_000),
    module=st.none() | st.text(),
    parameter=st.none() | st.text(),
    step=st.none() | st.integers(0, 10**9),
    rank=st.none() | st.integers(0, 64),
    direction=st.none() | st.sampled_from(["forward", "backward"]),
)
FINDINGS = st.builds(
    Finding,
    rule=st.text(min_size=1),
    severity=st.sampled_from(Severity),
    confidence=st.sampled_from(Confidence),
    message=st.text(),
    where=WHERE,
    evidence=st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.integers())),
    fix=st.text(),
    confirmed=st.none() | st.booleans(),
    first_step=st.none() | st.integers(0, 10**6),
    last_step=st.none() | st.integers(0, 10**6),
    count=st.integers(1, 10**6),
    touches=st.frozensets(st.text()),
)


@given(FINDINGS)
def test_through_json_and_back(finding: Finding) -> None:
    assert Finding.from_dict(json.loads(json.dumps(finding.to_dict()))) == finding


@given(FINDINGS)
def test_the_key_is_the_place_and_not_the_time(finding: Finding) -> None:
    later = replace(finding, count=99, last_step=10**7, message="other", where=replace(finding.where, step=3, sample=1))
    assert later.key == finding.key
    assert replace(finding, where=replace(finding.where, line=10**6)).key != finding.key
    assert replace(finding, rule=finding.rule + "x").key != finding.key


def test_only_what_is_known_is_written() -> None:
    assert Where(file="a.py", line=3, step=0).to_dict() == {"file": "a.py", "line": 3, "step": 0}
    assert Where().to_dict() == {}


def test_fields_of_a_later_version_are_passed_over() -> None:
    assert Where.from_dict({"line": 2, "planet": "Mars"}) == Where(line=2)


def test_every_field_of_a_place_is_described() -> None:
    assert Where.__doc__ is not None
    for field in fields(Where):
        assert f"        {field.name}: " in Where.__doc__


def test_nonfinite_evidence_becomes_words() -> None:
    finding = Finding("r", Severity.ERROR, Confidence.DEFINITE, "m", evidence={"norm": float("nan")})
    assert finding.to_dict()["evidence"] == {"norm": "NaN"}


@pytest.mark.parametrize("missing", ["rule", "severity", "confidence", "message"])
def test_a_finding_without_its_essentials(missing: str) -> None:
    data = Finding("r", Severity.ERROR, Confidence.DEFINITE, "m").to_dict()
    del data[missing]
    with pytest.raises(KeyError):
        Finding.from_dict(data)


def test_odd_values_fall_back() -> None:
    data = Finding("r", Severity.ERROR, Confidence.DEFINITE, "m").to_dict()
    data |= {"where": 3, "evidence": [], "touches": "abc", "confirmed": "yes", "first_step": True, "count": 0}
    finding = Finding.from_dict(data)
    assert (finding.where, finding.evidence, finding.touches) == (Where(), {}, frozenset())
    assert (finding.confirmed, finding.first_step, finding.count) == (None, None, 1)


def test_severities_are_ordered_and_parsed() -> None:
    assert Severity.INFO < Severity.WARNING < Severity.ERROR
    assert [Severity.parse(w) for w in ("info", "Warning", "ERROR")] == list(Severity)
    assert [s.label for s in Severity] == ["info", "warning", "error"]
    assert [c.label for c in Confidence] == ["possible", "probable", "definite"]
    with pytest.raises(ValueError, match="'fatal' is no severity; it is one of info, warning, error"):
        Severity.parse("fatal")
