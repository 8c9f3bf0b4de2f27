"""Causes and symptoms."""

from __future__ import annotations

from graphlib import TopologicalSorter

from hypothesis import given
from hypothesis import strategies as st

from osler.catalogue import RULES
from osler.core.diagnosis import diagnose
from osler.core.finding import Confidence, Finding, Severity
from osler.core.report import NotChecked, Report, Series

CAUSES = {"a": frozenset("bc"), "b": frozenset("c"), "c": frozenset()}


def finding(rule: str, step: int | None = 0, touches: str = "", severity: Severity = Severity.ERROR) -> Finding:
    return Finding(
        rule, severity, Confidence.DEFINITE, rule, first_step=step, last_step=step, touches=frozenset(touches.split())
    )


def tree(*findings: Finding) -> list[object]:
    """`[id, [symptoms …]]` for each root."""

    def of(place: object) -> list[object]:
        return [place.id, [of(s) for s in place.symptoms]]  # type: ignore[attr-defined]

    return [of(p) for p in diagnose(findings, CAUSES).roots]


def test_a_cause_with_its_symptom() -> None:
    assert tree(finding("a", 1), finding("b", 2)) == [["F1", [["F2", []]]]]


def test_the_order_of_sight_does_not_matter() -> None:
    assert tree(finding("b", 2), finding("a", 1)) == [["F2", [["F1", []]]]]


def test_ties_follow_the_edge() -> None:
    assert tree(finding("a", 5), finding("b", 5)) == [["F1", [["F2", []]]]]


def test_a_cause_does_not_come_later() -> None:
    assert tree(finding("a", 3), finding("b", 2)) == [["F2", []], ["F1", []]]


def test_without_an_edge_there_is_no_cause() -> None:
    assert tree(finding("c", 0), finding("a", 1)) == [["F1", []], ["F2", []]]


def test_they_must_touch() -> None:
    assert tree(finding("a", 0, "module:x"), finding("b", 1, "module:y")) == [["F1", []], ["F2", []]]
    assert tree(finding("a", 0, "module:x rank:0"), finding("b", 1, "rank:0")) == [["F1", [["F2", []]]]]
    assert tree(finding("a", 0), finding("b", 1, "module:y")) == [["F1", [["F2", []]]]]


def test_without_steps_the_subject_is_enough() -> None:
    assert tree(finding("a", None, "x"), finding("b", 1, "x")) == [["F1", [["F2", []]]]]
    assert tree(finding("a", 7, "x"), finding("b", None, "x")) == [["F1", [["F2", []]]]]


def test_the_nearest_cause_is_named() -> None:
    assert tree(finding("a", 0), finding("b", 1), finding("c", 2)) == [["F1", [["F2", [["F3", []]]]]]]


def test_of_two_of_a_kind_the_earliest() -> None:
    assert tree(finding("a", 1), finding("a", 0), finding("b", 2)) == [["F2", [["F3", []]]], ["F1", []]]


def test_the_worst_root_comes_first_then_the_earliest() -> None:
    order = tree(
        finding("c", 0, severity=Severity.INFO), finding("c", 9), finding("c", 4), finding("c", 4, severity=Severity.WARNING)
    )  # fmt: skip
    assert [root[0] for root in order] == ["F3", "F2", "F4", "F1"]  # type: ignore[index]


@given(
    st.lists(
        st.builds(
            finding,
            st.sampled_from("abc"),
            st.none() | st.integers(0, 3),
            st.sampled_from(["", "x", "y", "x y"]),
            st.sampled_from(Severity),
        ),
        max_size=12,
    )
)
def test_every_finding_stands_in_it_once(findings: list[Finding]) -> None:
    diagnosis = diagnose(findings, CAUSES)
    places = list(diagnosis.in_order())
    assert sorted(p.id for p in places) == sorted(f"F{i + 1}" for i in range(len(findings)))
    seen = set()
    for place in places:
        assert place.cause is None or place.cause.id in seen
        seen.add(place.id)


def test_the_catalogues_edges_form_no_circle() -> None:
    order = list(TopologicalSorter({name: rule.causes for name, rule in RULES.items()}).static_order())
    assert set(order) == set(RULES)


def test_a_report_in_json() -> None:
    report = Report(
        {"kind": "run"},
        findings=[finding("log-of-zero", 2, "parameter:w"), finding("nonfinite-parameter", 3, "parameter:w")],
        not_checked=[NotChecked("dead-relu", "why"), NotChecked("the dump", "full", is_rule=False)],
        series=[Series("loss", "curve", [0, 1], [1.0, float("nan")]), Series("g", "heatmap", [0], [[1.0]], ["w"])],
        overhead={"ratio": float("inf")},
        version="1",
    )
    data = report.to_dict(RULES)
    assert [(f["id"], f["root"], f["caused_by"], f["symptoms"]) for f in data["findings"]] == [  # type: ignore[attr-defined]
        ("F1", True, None, ["F2"]),
        ("F2", False, "F1", []),
    ]
    assert data["not_checked"] == [{"rule": "dead-relu", "why": "why"}, {"what": "the dump", "why": "full"}]
    assert data["series"][0]["values"] == [1.0, "NaN"]  # type: ignore[index]
    assert data["series"][1]["rows"] == ["w"]  # type: ignore[index]
    assert data["overhead"] == {"ratio": "Infinity"}
    assert (data["osler"], data["schema"]) == ("1", 1)


def test_possible_findings_are_held_back() -> None:
    sure = finding("a", severity=Severity.WARNING)
    maybe = Finding("b", Severity.ERROR, Confidence.POSSIBLE, "b")
    report = Report({"kind": "watch"}, findings=[sure, maybe])
    assert report.at_least(Severity.INFO) == [sure]
    assert report.at_least(Severity.ERROR, Confidence.POSSIBLE) == [maybe]
