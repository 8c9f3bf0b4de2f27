"""The settings tree: every threshold with its words, its source, its rules."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError, asdict

import pytest

from osler.catalogue import RULES
from osler.core.settings import Settings, build, options

OPTIONS = list(options())


def test_names_are_unique_and_dotted() -> None:
    names = [o.name for o in OPTIONS]
    assert len(set(names)) == len(names)
    assert {"budget.fraction", "numbers.scaler_skips", "gradients.window", "dump.max_mb", "records.keep_runs"} <= set(
        names
    )
    assert {"select", "ignore", "per_file_ignores", "fail_on"} <= set(names)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda o: o.name)
def test_every_setting_says_what_it_does_and_where_its_default_comes_from(option: object) -> None:
    assert len(option.doc) > 10  # type: ignore[attr-defined]
    assert len(option.source) > 5  # type: ignore[attr-defined]
    assert set(option.rules) <= set(RULES)  # type: ignore[attr-defined]


def test_there_and_back() -> None:
    settings = Settings(ignore=["dead-relu"], per_file_ignores={"a.py": ["dead-relu"]})
    assert build(asdict(settings)) == settings
    assert build({}) == Settings()
    assert build({"dump": {"max_mb": 1.0}}).dump.max_mb == 1.0


def test_settings_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().fail_on = "error"  # type: ignore[misc]
    assert Settings().ignore is not Settings().ignore


def test_unknown_settings_are_errors() -> None:
    with pytest.raises(TypeError):
        build({"dump": {"max_gb": 1}})


def test_core_catalogue_and_syntax_import_nothing_heavy() -> None:
    code = (
        "import sys, osler, osler.core.report, osler.core.settings, osler.core.sink, osler.catalogue, osler.syntax.classes;"
        "print([m for m in ('torch', 'numpy', 'pydantic', 'rich', 'typer', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
