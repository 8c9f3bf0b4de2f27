"""JSON, its schema, SARIF, JUnit: what other programs read."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree

import pytest
from pydantic import ValidationError

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.report import NotChecked, Report
from osler.render.json_ import to_json
from osler.render.junit import to_junit
from osler.render.sarif import FINGERPRINT, to_sarif
from osler.render.schema import ReportModel, schema


def refuse(word: str) -> object:
    raise AssertionError(f"{word} is not strict JSON")


def load(text: str) -> dict:  # type: ignore[type-arg]
    return json.loads(text, parse_constant=refuse)  # type: ignore[no-any-return]


def test_json_is_strict_and_keeps_its_contract(report: Report, sample: ModuleType) -> None:
    text = to_json(report, sample.RULES)
    assert text.isascii() and text.endswith("}\n") and text.startswith('{\n  "osler": "0.1.0",\n  "schema": 1,')
    data = load(text)
    first = data["findings"][0]
    assert first["id"] == "F2" and first["root"] is True and first["caused_by"] is None and first["symptoms"] == ["F3"]
    assert first["evidence"]["loss"] == "Infinity" and first["evidence"]["gradient_norm"] == "NaN"
    assert data["findings"][1]["caused_by"] == "F2"
    assert data["series"][0]["values"][97:99] == ["Infinity", "NaN"]
    assert data["not_checked"][2] == {"what": "exact line of steps 5 to 40", "why": "the budget of 3 % was used up"}


def test_real_output_is_valid_by_the_schema(report: Report, sample: ModuleType) -> None:
    text = to_json(report, sample.RULES)
    # pydantic refuses the lone surrogates of paths that are not UTF-8, which JSON can carry.
    ReportModel.model_validate_json(re.sub(r"\\ud[89a-f]..", "?", text))
    ReportModel.model_validate_json(to_json(Report({}, version="0"), {}))
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.Draft202012Validator(schema()).validate(load(text))


BREAKS = {
    "a finding without a rule": lambda d: d["findings"][0].pop("rule"),
    "another severity": lambda d: d["findings"][0].update(severity="fatal"),
    "a field nobody knows": lambda d: d["findings"][0].update(colour="red"),
    "a line 0": lambda d: d["findings"][0]["where"].update(line=0),
    "a step as text": lambda d: d["findings"][0]["where"].update(step="3"),
    "an id of another form": lambda d: d["findings"][0].update(id="2"),
    "confirmed as a word": lambda d: d["findings"][0].update(confirmed="yes"),
    "a value that is a word": lambda d: d["series"][0]["values"].append("inf"),
    "a heat map without rows": lambda d: d["series"][3].pop("rows"),
    "a curve with rows": lambda d: d["series"][0].update(rows=[]),
    "not checked without a reason": lambda d: d["not_checked"][0].pop("why"),
    "another version": lambda d: d.update(schema=2),
    "no series": lambda d: d.pop("series"),
}


@pytest.mark.parametrize("what", BREAKS)
def test_the_schema_refuses(what: str, report: Report, sample: ModuleType) -> None:
    data = load(to_json(report, sample.RULES))
    BREAKS[what](data)
    with pytest.raises(ValidationError):
        ReportModel.model_validate_json(re.sub(r"\\ud[89a-f]..", "?", json.dumps(data)))
    jsonschema = pytest.importorskip("jsonschema")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema()).validate(data)


def test_sarif(report: Report, sample: ModuleType, tmp_path: Path) -> None:
    text = to_sarif(report, sample.RULES)
    assert text.isascii() and "\\u001b" not in text
    log = load(text)
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    rules = run["tool"]["driver"]["rules"]
    assert [r["id"] for r in rules] == [*sample.RULES, "no-such-rule"]
    assert "```python\nloss = -torch.log_softmax(logits, 1).mean()\n```" in rules[0]["help"]["markdown"]
    assert rules[0]["defaultConfiguration"] == {"level": "error"}
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == tmp_path.as_uri() + "/"
    results = run["results"]
    assert [r["ruleId"] for r in results] == ["log-of-zero", "update-ratio", "vanishing-gradient", "no-such-rule"]
    for result in results:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    first = results[0]
    assert first["level"] == "error" and len(first["relatedLocations"]) == 8
    (location,) = first["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "train.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 11},
    }
    flow = first["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [f["executionOrder"] for f in flow] == list(range(1, 10))
    assert flow[1]["location"]["message"]["text"].startswith("nonfinite-parameter: 8 of 8 parameters")
    without_file = results[2]["locations"]
    assert [n["fullyQualifiedName"] for n in without_file[0]["logicalLocations"]] == ["2", "2.bias"]
    assert "physicalLocation" not in without_file[0]
    odd = results[3]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert unquote_to_bytes(odd) == b"[red]d\xffta<b>.py"
    notes = run["invocations"][0]["toolExecutionNotifications"]
    assert len(notes) == 5 and notes[1]["associatedRule"] == {"id": "dead-relu", "index": 3}


def test_a_sarif_result_is_as_bad_as_its_worst_symptom(sample: ModuleType) -> None:
    touches = frozenset({"optimizer:0"})
    findings = [
        Finding("log-of-zero", Severity.WARNING, Confidence.DEFINITE, "a", first_step=1, touches=touches),
        Finding("nonfinite-op", Severity.ERROR, Confidence.DEFINITE, "b", first_step=2, touches=touches),
    ]
    (result,) = load(to_sarif(Report({}, findings=findings), sample.RULES))["runs"][0]["results"]
    assert result["level"] == "error" and result["locations"] == []
    assert result["properties"]["severity"] == "warning"


def test_a_sarif_fingerprint_survives_new_lines_above(report: Report, sample: ModuleType, tmp_path: Path) -> None:
    def prints() -> list[str]:
        return [
            r["partialFingerprints"][FINGERPRINT] for r in load(to_sarif(report, sample.RULES))["runs"][0]["results"]
        ]

    before = prints()
    script = tmp_path / "train.py"
    script.write_text("# new\n# lines\n" + script.read_text())
    for finding in report.findings:
        if finding.where.file == str(script):
            object.__setattr__(finding.where, "line", (finding.where.line or 0) + 2)
    assert prints() == before and len(set(before)) == len(before)


def test_sarif_of_a_file_outside_the_root(sample: ModuleType) -> None:
    findings = [Finding("log-of-zero", Severity.ERROR, Confidence.DEFINITE, "a", Where("/opt/a b.py", 3))]
    log = load(to_sarif(Report({}, findings=findings), sample.RULES, root="/home"))
    artifact = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "file:///opt/a%20b.py"}


def test_junit(report: Report, sample: ModuleType) -> None:
    text = to_junit(report, sample.RULES)
    suites = ElementTree.fromstring(text.encode())
    (suite,) = suites
    cases = {c.get("name"): c for c in suite}
    assert suite.get("tests") == str(len(list(suite))) and suite.get("errors") == "0"
    assert suite.get("time") == "12.750" and suite.get("timestamp") == "2025-03-01T12:30:00"
    failed = [c for c in suite if c.find("failure") is not None]
    assert suite.get("failures") == suites.get("failures") == str(len(failed)) == "10"
    first = cases["log-of-zero (train.py:11)"]
    assert (first.get("classname"), first.get("file"), first.get("line")) == ("osler.numbers", "train.py", "11")
    failure = first.find("failure")
    assert failure is not None and failure.get("type") == "error" and failure.text is not None
    assert "fix: Replace softmax and log by" in failure.text and "loss=Infinity" in failure.text
    symptom = cases["nonfinite-parameter (train.py:18)"].find("failure")
    assert symptom is not None and "caused by: log-of-zero (F2)" in (symptom.text or "")
    mild = [c for c in suite if (c.get("name") or "").startswith(("no-such-rule", "vanishing-gradient"))]
    assert len(mild) == 2 and all(c.find("system-out") is not None and c.find("failure") is None for c in mild)
    skipped = cases["dead-relu"].find("skipped")
    assert skipped is not None and skipped.get("message") == "the run ended before a window of 64 looks was full"
    assert suite.get("skipped") == "5"
    assert "\x1b" not in text and "\x07" not in text


def test_junit_thresholds_and_rules_judged(sample: ModuleType) -> None:
    findings = [Finding("dead-relu", Severity.WARNING, Confidence.PROBABLE, "a")]
    report = Report({"kind": "run", "steps": 5}, findings=findings)

    def counts(**kwargs: object) -> tuple[str | None, str | None, str | None]:
        suites = ElementTree.fromstring(to_junit(report, sample.RULES, **kwargs))  # type: ignore[arg-type]
        return suites.get("tests"), suites.get("failures"), suites.get("skipped")

    assert counts() == ("7", "1", "0")
    assert counts(fail_on=Severity.ERROR) == ("7", "0", "0")
    assert counts(judged=["dead-relu", "log-of-zero"]) == ("2", "1", "0")
    report.subject["kind"] = "watch"
    assert counts() == ("7", "1", "0")
    report.subject["kind"] = "check"
    assert counts() == ("1", "1", "0")


def test_junit_passes_nothing_where_nothing_was_seen(sample: ModuleType) -> None:
    report = Report({"kind": "run", "steps": 0}, not_checked=[NotChecked("dead-relu", "no step")])
    suites = ElementTree.fromstring(to_junit(report, sample.RULES))
    assert suites.get("tests") == suites.get("skipped") == "7"


def test_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys, osler.render, osler.render.words, osler.render.source, osler.render.outline, osler.render.json_, "
        "osler.render.sarif, osler.render.junit\n"
        "print(*sorted({'rich', 'jinja2', 'pydantic', 'numpy', 'torch', 'pygments'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
    code = (
        "import sys, osler.render.terminal\nprint(*sorted({'jinja2', 'pydantic', 'numpy', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
