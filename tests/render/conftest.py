from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from osler.core.report import Report


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("render_sample", Path(__file__).with_name("sample.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def sample() -> ModuleType:
    """The module `sample.py`: RULES, HOSTILE, report(folder)."""
    return _load()


@pytest.fixture
def report(sample: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """The sample's report; its folder is the working directory."""
    monkeypatch.chdir(tmp_path)
    return sample.report(tmp_path)  # type: ignore[no-any-return]
