"""Private torch APIs: all in one file, and each can do without."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import osler

TRAINING = Path(osler.__file__).parent / "training"
# underscore names that are osler's own, by the object that they are read from
_OWN = re.compile(r"^(self|cls|recorder|watch|session)$")

NAMES = [
    "global forward hooks",
    "function mode stack",
    "autograd node of an operation",
    "norms in one call",
    "scaler's found_inf",
    "storage identity",
    "tracing state",
    "functorch level",
]


def private_uses(path: Path) -> Iterator[str]:
    """Reads of `torch._…` and of underscore attributes of things that are not osler's own."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = {n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    own |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    own |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
            if "._" in node.module:
                yield f"{path.name}:{node.lineno}: from {node.module}"
            for alias in node.names:
                if alias.name.startswith("_"):
                    yield f"{path.name}:{node.lineno}: {node.module}.{alias.name}"
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            base = ast.unparse(node.value)
            if not _OWN.match(base.partition(".")[0]) and node.attr not in own:
                yield f"{path.name}:{node.lineno}: {base}.{node.attr}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr") and len(node.args) > 1:
            name = node.args[1]
            if isinstance(name, ast.Constant) and re.match(r"_[a-zA-Z]", str(name.value)):
                yield f"{path.name}:{node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize(
    "path", [p for p in sorted(TRAINING.rglob("*.py")) if p.name != "private.py"], ids=lambda p: p.stem
)
def test_no_other_file_touches_a_private_api(path: Path) -> None:
    # sys._getframe, os._exit, named tuples and the import system are Python's own
    found = [u for u in private_uses(path) if not re.search(r"sys\._getframe|os\._exit|_initializing|_fields", u)]
    assert found == []


def test_the_search_for_private_apis_finds_them() -> None:
    found = list(private_uses(TRAINING / "private.py"))
    assert any("_C" in u for u in found)
    assert any("_version" in u for u in found)
    assert any("_orig_mod" in u for u in found)


def test_every_private_api_is_known_here() -> None:
    code = "from osler.training import private; print(sorted(private.status()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ast.literal_eval(done.stdout) == sorted(NAMES)


@pytest.mark.parametrize("name", ["all in use", *NAMES])
def test_faults_are_found_without_it(batch: Callable[[str], Any], name: str) -> None:
    run = batch("fallbacks")
    seen = run.facts("case_fallbacks")[name]
    assert "error" not in seen, seen["error"]
    for each, status in seen["status"].items():
        assert status == "in use" if each != name else status.startswith("switched off; "), each
    assert seen["same"] is True
    assert seen["findings"] == seen["notes"] == []
    assert seen["forward"] == _at(run, "log-of-zero", "forward", "forward", 2)
    # without the node of an operation the line is that of the backward call and the operation its derivative's own
    root = "divide-by-zero" if name == "autograd node of an operation" else "sqrt-at-zero"
    assert seen["backward"] == _at(run, root, "backward", "backward", 2)
    assert seen["scaled"] == _at(run, root, "scaled", "backward", 11)
    assert seen["sparse"] == _at(run, root, "sparse", "backward", 2)


def _at(run: Any, rule: str, mark: str, direction: str, step: int) -> dict[str, Any]:
    return {"rule": rule, "line": run.line(mark), "direction": direction, "step": step, "notes": []}
