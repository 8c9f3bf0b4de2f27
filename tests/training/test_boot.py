"""Waking up in the user's process: waiting for torch, and running under an interpreter that has no osler.

Every case is a process of its own. `torch` is a package of a few lines, and the Session a recording stand-in: what is
tested is that the import system and the script are left as they would be.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from osler.app import trampoline

TORCH = """\
import sys, time
__version__ = "2.9.0"
state = "half"
time.sleep({pause})
class Tensor: ...
class nn: ...
class autograd: ...
class optim: ...
state = "whole"
"""

PRELUDE = """\
import json, sys, types
started, told = [], []
class Session:
    def __init__(self, sink, settings, options):
        self.given = [sink is SINK, settings, options]
    def install(self):
        started.append([*self.given, sys.modules["torch"].state])
class Sink:
    def __getattr__(self, name):
        return lambda *what: told.append([name, *what])
SINK = Sink()
stub = types.ModuleType("osler.training.session")
stub.Session = Session
sys.modules["osler.training.session"] = stub
from osler.training import boot
def waiting():
    return any(type(f).__module__ == "osler.core.guard" for f in sys.meta_path)
def say(**facts):
    print(json.dumps({"started": started, "told": told, "waiting": waiting(), **facts}))
"""

ONCE = [[True, "settings", {"cwd": "/x"}, "whole"]]


@pytest.fixture
def box(tmp_path: Path) -> Path:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(TORCH.format(pause=0))
    return tmp_path


def python(box: Path, code: str) -> tuple[dict[str, object], str]:
    environ = {**os.environ, "PYTHONPATH": str(box)}
    environ.pop("OSLER_RUN_DIR", None)
    child = subprocess.run(
        [sys.executable, "-c", PRELUDE + code], env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout), child.stderr


INSTALL = "boot.install(SINK, 'settings', {'cwd': '/x'})\n"


def test_starts_when_torch_has_been_imported_and_leaves_no_trace(box: Path) -> None:
    found, err = python(
        box,
        "import importlib.machinery as m\n" + INSTALL + "before = [list(started), waiting()]\n"
        "import torch\n"
        "say(before=before, kind=type(torch.__loader__) is m.SourceFileLoader,\n"
        "    same=torch.__spec__.loader is torch.__loader__, name=torch.__name__, package=torch.__package__)",
    )
    assert found["before"] == [[], True]
    assert found["started"] == ONCE and found["told"] == [] and not found["waiting"]
    assert found["kind"] and found["same"] and found["name"] == found["package"] == "torch"
    assert err == ""


def test_starts_at_once_where_torch_is_there_and_only_once(box: Path) -> None:
    found, _ = python(box, "import torch\n" + 2 * INSTALL + "say()")
    assert found["started"] == ONCE and not found["waiting"]
    found, _ = python(box, 2 * INSTALL + "import torch\n" + INSTALL + "say()")
    assert found["started"] == ONCE and not found["waiting"]


def test_a_script_that_only_asks_for_torch(box: Path) -> None:
    """`find_spec` starts nothing, and what it gives looks like the real thing and can be loaded by hand."""
    found, _ = python(
        box,
        INSTALL + "import importlib.util as u, importlib.machinery as m\n"
        "spec = u.find_spec('torch')\n"
        "copy = u.module_from_spec(spec)\n"
        "spec.loader.exec_module(copy)\n"
        "real = isinstance(spec.loader, m.SourceFileLoader)\n"
        "before = [real, spec.loader.name, copy.state, len(started), waiting()]\n"
        "import torch\n"
        "say(before=before)",
    )
    assert found["before"] == [True, "torch", "whole", 0, True]
    assert found["started"] == ONCE


def test_reload(box: Path) -> None:
    found, _ = python(
        box,
        INSTALL + "import importlib, torch\ntorch.extra = 1\nagain = importlib.reload(torch)\n"
        "say(same=again is torch, state=torch.state)",
    )
    assert found["same"] and found["state"] == "whole" and found["started"] == ONCE


def test_torch_that_fails_to_import_at_first(box: Path) -> None:
    """The script sees torch's own error, and the next attempt is watched."""
    good = (box / "torch" / "__init__.py").read_text()
    (box / "torch" / "__init__.py").write_text("import os\nif 'BAD' in os.environ: raise OSError('libcudart')\n" + good)
    found, err = python(
        box,
        INSTALL + "import os\nos.environ['BAD'] = '1'\n"
        "try:\n    import torch\nexcept OSError as e:\n    seen = [str(e)]\n"
        "seen += [len(started), waiting(), 'torch' in sys.modules]\n"
        "del os.environ['BAD']\nimport torch\nsay(seen=seen)",
    )
    assert found["seen"] == ["libcudart", 0, True, False]
    assert found["started"] == ONCE and err == ""


def test_no_torch_at_all(tmp_path: Path) -> None:
    found, _ = python(
        tmp_path,
        "sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n" + INSTALL + "try:\n    import torch\n"
        "except ModuleNotFoundError as e:\n    say(text=str(e), name=e.name)",
    )
    assert found["text"] == "No module named 'torch'" and found["name"] == "torch"
    assert found["started"] == [] and found["waiting"]


@pytest.mark.parametrize("kind", ["module", "namespace"])
def test_something_else_called_torch(tmp_path: Path, kind: str) -> None:
    if kind == "module":
        (tmp_path / "torch.py").write_text("flame = 1\n")
    else:
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "wood.py").write_text("flame = 1\n")
    found, err = python(
        tmp_path,
        "sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n" + INSTALL + "import torch\n"
        "import wave\n"  # asks the finders again
        "say(names=[n for n in dir(torch) if not n.startswith('__')])",
    )
    assert found["names"] == (["flame"] if kind == "module" else [])
    assert found["started"] == [] and not found["waiting"] and err == ""
    assert [t[:2] for t in found["told"]] == [["not_checked", "training"], ["flush"]]  # type: ignore[attr-defined]
    assert "is not PyTorch" in found["told"][0][2]  # type: ignore[index]


def test_faults_of_ours_are_one_line(box: Path) -> None:
    """A Session that cannot start tells the parent; where there is no way to tell it, stderr has the line."""
    fault = "def fail(*a): raise RuntimeError('no\\nhooks')\nstub.Session.install = fail\n"
    found, err = python(box, fault + INSTALL + "import torch\nsay(state=torch.state)")
    line = "watching could not start (RuntimeError: no hooks); the training goes on unwatched"
    assert found["told"] == [["not_checked", "training", line], ["note", line], ["flush"]]
    assert found["state"] == "whole" and not found["waiting"] and err == ""

    found, err = python(box, "boot.wait(lambda: 1 / 0)\nimport torch\nsay(state=torch.state)")
    assert err == (
        "osler: the plan of this run could not be read (ZeroDivisionError: division by zero); "
        "the training goes on unwatched\n"
    )
    assert found["state"] == "whole" and not found["waiting"]


def test_threads_that_import_torch_together(box: Path) -> None:
    (box / "torch" / "__init__.py").write_text(TORCH.format(pause=0.2))
    found, _ = python(
        box,
        INSTALL + "import threading\nseen = []\n"
        "def work():\n    import torch\n    seen.append(torch.state)\n"
        "threads = [threading.Thread(target=work) for _ in range(8)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\nsay(seen=seen)",
    )
    assert found["seen"] == ["whole"] * 8 and found["started"] == ONCE


def test_another_import_hook_in_front(box: Path) -> None:
    """A finder that loads torch by itself keeps ours from seeing it; the next import makes up for it."""
    found, _ = python(
        box,
        INSTALL + "from importlib.machinery import PathFinder\n"
        "class Greedy:\n    def find_spec(self, name, path=None, target=None):\n"
        "        return PathFinder.find_spec(name, path) if name == 'torch' else None\n"
        "sys.meta_path.insert(0, Greedy())\n"
        "import torch\nbefore = len(started)\nimport wave\nsay(before=before)",
    )
    assert found["before"] == 0 and found["started"] == ONCE and not found["waiting"]


# --- an interpreter without osler -------------------------------------------------------------------------------------

SELF = """\
import sys
print(sys.argv, sys.path[:2], sorted(vars(sys.modules["__main__"])), __name__)
print(globals().get("__file__"), __package__, __spec__ and __spec__.name, __doc__, type(__loader__).__name__)
print(globals() is vars(sys.modules["__main__"]), globals().get("__cached__"), __annotations__)
"""

SCRIPTS = {
    "show.py": f'"""Words."""\n{SELF}',
    "fail.py": "def f():\n    raise OSError('x')\ndef g():\n    try:\n        f()\n    finally:\n        1 / 0\ng()\n",
    "exit.py": "import atexit, sys\natexit.register(print, 'bye')\nsys.exit(7)\n",
    "word.py": "raise SystemExit('words')\n",
    "hook.py": "import sys\nsys.excepthook = lambda k, v, t: print('mine', k.__name__, t.tb_lineno)\n1 / 0\n",
    "syntax.py": "x = (\n",
    "latin.py": "# coding: latin-1\nprint('caf\xe9'.encode())\n",
    "stop.py": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n",
    "future.py": "print(__import__('inspect').signature(lambda: 0))\ndef f(x: nope = 1): pass\n",
    "pickle_.py": (
        "import pickle\nclass A:\n    def __eq__(self, o): return type(o) is A\n"
        "print(pickle.loads(pickle.dumps(A())) == A(), pickle.dumps(A())[:40])\n"
    ),
    "spawn.py": (
        "import multiprocessing as mp, sys\n"
        "class Job:\n    x = 3\n"
        "def work(job): return job.x * 2, __name__, sys.argv[1:]\n"
        "if __name__ == '__main__':\n"
        "    for how in ('spawn', 'fork'):\n"
        "        with mp.get_context(how).Pool(1) as pool:\n"
        "            print(how, pool.map(work, [Job()]))\n"
    ),
    "pack/__init__.py": "",
    "pack/__main__.py": SELF,
    "pack/mod.py": "from . import __name__ as n\nprint(n)\n" + SELF,
    "pack/bad.py": "1 / 0\n",
}

TARGETS = [
    *[[name, "1", "-x"] for name in SCRIPTS if "/" not in name],
    ["./show.py"],
    ["pack/../show.py"],
    ["link.py"],
    ["pack"],
    ["./pack/"],
    ["show.pyc"],
    ["app.pyz", "2"],
    ["-m", "pack", "3"],
    ["-m", "pack.mod", "-m"],
    ["-m", "pack.bad"],
    ["-m", "nothing_of_that_name"],
    ["-c", SELF, "4"],
    ["-c", "1 / 0"],
    ["caf\xe9 \udcff/show.py"],
    ["gone.py"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import py_compile
    import zipapp

    folder = tmp_path_factory.mktemp("scripts").resolve()
    for name, text in SCRIPTS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="latin-1")
    odd = folder / "caf\xe9 \udcff"
    odd.mkdir()
    (odd / "show.py").write_text(SELF)
    (folder / "link.py").symlink_to("pack/bad.py")
    py_compile.compile(str(folder / "show.py"), str(folder / "show.pyc"))
    (folder / "app").mkdir()
    (folder / "app" / "__main__.py").write_text(SELF)
    zipapp.create_archive(folder / "app", folder / "app.pyz")
    return folder


def outcome(folder: Path, *command: str) -> tuple[int, str, str]:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("OSLER")}
    child = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="replace", env=environ, timeout=60, check=False
    )
    return child.returncode, child.stdout, child.stderr


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: ascii(" ".join(t)[:20]))
def test_trampoline_is_not_noticed(folder: Path, target: list[str]) -> None:
    """Output, traceback, exit code are those of plain Python, for every kind of target."""
    plain = outcome(folder, sys.executable, *target)
    assert outcome(folder, sys.executable, trampoline.__file__, *target) == plain


@pytest.mark.parametrize("target", [["show.py", "1"], ["pack"], ["-m", "wave"], ["-c", SELF]], ids=lambda t: t[0])
def test_trampoline_in_isolated_mode(folder: Path, target: list[str]) -> None:
    plain = outcome(folder, sys.executable, "-I", *target)
    assert outcome(folder, sys.executable, "-I", trampoline.__file__, *target) == plain


def test_trampoline_brings_osler_and_none_of_its_neighbours(tmp_path: Path) -> None:
    script = tmp_path / "x.py"
    script.write_text(
        "import sys, osler, osler.core.finding\n"
        "print(osler.__version__, sys.path[0] == sys.argv[1])\n"
        "try:\n    import rich\nexcept ImportError:\n    print('none')\n"
    )
    # -S stands for an interpreter whose site-packages has nothing of osler's environment.
    code, out, err = outcome(tmp_path, sys.executable, "-S", trampoline.__file__, "x.py", str(tmp_path.resolve()))
    import osler

    assert (code, out, err) == (0, f"{osler.__version__} True\nnone\n", "")
