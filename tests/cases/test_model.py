from __future__ import annotations

import copy
from typing import Any

import pytest

from osler.cases.model import CaseFile, HealthyFile, ModelError, read

GOOD: dict[str, Any] = {
    "case": {"id": "a-case", "title": "t", "detects": ["log-of-zero"], "source": "s", "cost_s": 3, "needs": ["torch"]},
    "inject": {"flag": "--faulty"},
    "in_effect": {"expr": "a > 1"},
    "expect": {"finding": {"rule": "log-of-zero", "root": True, "by_step": 2}},
    "twin": {"flag": "--clean"},
    "observe": {"promql": "osler_gradient_norm", "panel": {"dashboard": "osler-training", "id": 3}},
}


def changed(path: str, value: object = None, *, drop: bool = False) -> dict[str, Any]:
    data = copy.deepcopy(GOOD)
    *parents, last = path.split(".")
    table = data
    for key in parents:
        table = table[key]
    if drop:
        del table[last]
    else:
        table[last] = value
    return data


def test_the_whole_file() -> None:
    file = read(CaseFile, GOOD)
    assert file.case.id == "a-case"
    assert file.expect.finding.by_step == 2
    assert file.expect.also == []
    assert file.inject.exit_code == 0
    assert file.observe is not None and file.observe.panel is not None and file.observe.panel.id == 3


def test_what_may_be_left_out() -> None:
    data = {k: GOOD[k] for k in ("case", "in_effect", "expect")}
    file = read(CaseFile, data)
    assert (file.inject.flag, file.twin.flag, file.observe) == ("--faulty", "--clean", None)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (changed("case.titel", "x"), "[case] has no key 'titel'; closest: title"),
        (changed("expct", {}), "the file has no key 'expct'; closest: expect"),
        (changed("expect.finding.by_stp", 3), "[expect.finding] has no key 'by_stp'; closest: by_step"),
        (changed("observe.panel.ident", 3), "[observe.panel] has no key 'ident'; closest: id"),
        (changed("twin.zzz", 1), "[twin] has no key 'zzz'; it has flag"),
        (changed("case.title", drop=True), "[case] lacks 'title'"),
        (changed("in_effect", drop=True), "the file lacks 'in_effect'"),
        (changed("case.id", "A Case"), "[case] id: 'A Case' is no name; use small letters, digits and single hyphens"),
        (changed("in_effect.expr", "a > ("), "[in_effect] expr: 'a > (' is no expression"),
        (
            changed("expect.finding.rule", "dead-relu"),
            "[expect] wants 'dead-relu', which [case] detects does not list (log-of-zero)",
        ),
        (changed("twin.flag", "--faulty"), "[inject] and [twin] have the same flag, --faulty"),
    ],
)
def test_one_clear_line(data: dict[str, Any], line: str) -> None:
    with pytest.raises(ModelError) as err:
        read(CaseFile, data)
    assert err.value.lines == [line]


@pytest.mark.parametrize(
    ("data", "start"),
    [
        (changed("case.cost_s", 0), "[case] cost_s: "),
        (changed("case.cost_s", "long"), "[case] cost_s: "),
        (changed("case.detects", []), "[case] detects: "),
        (changed("expect.finding.by_step", -1), "[expect.finding] by_step: "),
        (changed("expect.finding.direction", "up"), "[expect.finding] direction: "),
        (changed("inject.flag", "faulty; rm -rf"), "[inject] flag: "),
        (changed("case", 3), "the file case: "),
    ],
)
def test_wrong_values(data: dict[str, Any], start: str) -> None:
    with pytest.raises(ModelError) as err:
        read(CaseFile, data)
    assert len(err.value.lines) == 1
    assert err.value.lines[0].startswith(start)
    assert "\n" not in err.value.lines[0]


def test_every_error_has_its_line() -> None:
    data = changed("case.titel", "x")
    del data["case"]["title"]
    data["twin"]["flga"] = "--clean"
    with pytest.raises(ModelError) as err:
        read(CaseFile, data)
    assert sorted(err.value.lines) == [
        "[case] has no key 'titel'; closest: title",
        "[case] lacks 'title'",
        "[twin] has no key 'flga'; closest: flag",
    ]


def test_healthy_file() -> None:
    script = {"id": "a", "file": "a.py", "title": "t", "cost_s": 1, "needs": [], "traps": "one trap", "steps": 5}
    assert read(HealthyFile, {"script": [script]}).script[0].traps == ["one trap"]
    with pytest.raises(ModelError, match="two scripts have the id 'a'"):
        read(HealthyFile, {"script": [script, script]})
    with pytest.raises(ModelError, match=r"\[script\[0\]\] has no key 'step'; closest: steps"):
        read(HealthyFile, {"script": [{**script, "step": 1}]})
