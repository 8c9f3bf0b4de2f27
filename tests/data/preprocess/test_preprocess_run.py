"""The guard under `osler run`: attached when scikit-learn arrives, unnoticed by the script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sklearn")

LEAK = """\
import numpy as np
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
rng = np.random.default_rng(0)
X, y = rng.normal(size=(120, 60)), rng.integers(0, 2, 120)
best = SelectKBest(k=5).fit_transform(X, y)
print(cross_val_score(LogisticRegression(), best, y, {jobs}).round(6))
"""


def osler(cwd: Path, *args: str) -> tuple[subprocess.CompletedProcess[bytes], dict[str, Any]]:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("OSLER")}
    done = subprocess.run(
        [sys.executable, "-m", "osler", "run", "--json", "r.json", *args],
        cwd=cwd, env={**environ, "OMP_NUM_THREADS": "1"}, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    return done, json.loads((cwd / "r.json").read_text())


def test_a_script_with_scikit_learn_and_no_torch_is_watched(tmp_path: Path) -> None:
    """Its folds are judged as they are handed to worker processes, which nobody watches from here."""
    (tmp_path / "x.py").write_text(LEAK.format(jobs="cv=4, n_jobs=2"))
    done, report = osler(tmp_path, "x.py")
    assert done.returncode == 0 and done.stdout.count(b".") == 4
    assert b"nothing was watched" not in done.stderr and b"preprocess-leak" in done.stderr
    (finding,) = report["findings"]
    assert (finding["rule"], finding["severity"], finding["root"]) == ("preprocess-leak", "error", True)
    assert finding["where"]["line"] == 7 and Path(finding["where"]["file"]).name == "x.py"
    assert [n for n in report["not_checked"] if "worker processes" in n["why"]]
    assert not [n for n in report["notes"] if "killed" in n]
    assert report["environment"]["preprocess"]["fits"] == 1


def test_an_import_alone_is_no_watching_and_an_error_passes(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("import sklearn.preprocessing\nprint('out')\n")
    done, report = osler(tmp_path, "x.py")
    assert done.stdout == b"out\n" and "imported no torch" in done.stderr.decode()
    assert report["findings"] == []
    (tmp_path / "y.py").write_text(
        "from sklearn.preprocessing import StandardScaler\nStandardScaler().fit([[1.0], ['a']])\n"
    )
    done, report = osler(tmp_path, "y.py")
    assert done.returncode == 1 and b"ValueError: could not convert string to float" in done.stderr
    assert report["subject"]["exit_code"] == 1 and not [n for n in report["notes"] if "killed" in n]


def test_beside_a_training_both_have_one_journal(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "x.py").write_text(
        LEAK.format(jobs="cv=3") + "import torch\n"
        "model = torch.nn.Linear(5, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.01)\n"
        "for step in range(4):\n"
        "    loss = torch.log(model(torch.ones(8, 5)).square() * (step != 2)).mean()  # bad\n"
        "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
    )
    done, report = osler(tmp_path, "--budget", "none", "x.py")
    assert done.returncode == 0
    assert {f["rule"] for f in report["findings"] if f["root"]} >= {"preprocess-leak", "log-of-zero"}
    assert report["subject"]["steps"] == 4
    assert all(note.endswith("was seen both while it ran and in the source") for note in report["notes"])
    (run,) = (tmp_path / ".osler" / "runs").iterdir()
    # The script's own, and what was read in its source afterwards.
    assert len(list(run.glob("journal-*"))) == 1 + bool(report["notes"])


HOOK = """\
import json, sys
from osler.core.guard import when_imported
told = []
when_imported("{name}", lambda module: told.append(module.state))
def waiting():
    return sum(type(f).__module__ == "osler.core.guard" for f in sys.meta_path)
"""


def hooked(box: Path, code: str, name: str = "rock") -> Any:
    done = subprocess.run(
        [sys.executable, "-c", HOOK.format(name=name) + code],
        env={**os.environ, "PYTHONPATH": str(box)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_waiting_for_a_module_leaves_no_trace(tmp_path: Path) -> None:
    (tmp_path / "rock").mkdir()
    (tmp_path / "rock" / "__init__.py").write_text(
        "import os\nif 'BAD' in os.environ: raise OSError('x')\nstate = 'whole'\n"
    )
    assert hooked(
        tmp_path,
        "import importlib.machinery as m\nbefore = [list(told), waiting()]\nimport rock\n"
        "print(json.dumps([before, told, waiting(), type(rock.__loader__) is m.SourceFileLoader,\n"
        "  rock.__spec__.loader is rock.__loader__]))",
    ) == [[[], 1], ["whole"], 0, True, True]
    assert hooked(
        tmp_path,
        "import os\nos.environ['BAD'] = '1'\ntry:\n    import rock\nexcept OSError as e:\n    seen = [str(e), waiting()]\n"
        "del os.environ['BAD']\nimport rock\nwhen_imported('rock', lambda m: told.append('again'))\n"
        "when_imported('rock', lambda m: 1 / 0)\nprint(json.dumps([seen, told, waiting()]))",
    ) == [["x", 1], ["whole", "again"], 0]
    assert hooked(
        tmp_path,
        "import importlib.util as u\nspec = u.find_spec('rock')\ncopy = u.module_from_spec(spec)\n"
        "spec.loader.exec_module(copy)\nbefore = [copy.state, list(told)]\nimport rock\nprint(json.dumps([before, told]))",
    ) == [["whole", []], ["whole"]]
