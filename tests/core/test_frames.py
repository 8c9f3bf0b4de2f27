"""Which line of the user's code is running."""

from __future__ import annotations

import os
import site
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

import osler
from osler.core import frames

PACKAGE = Path(osler.__file__).parent
LIBRARY = Path(sysconfig.get_paths()["purelib"])


@pytest.mark.parametrize(
    ("file", "verdict"),
    [
        (__file__, True),
        ("train.py", True),
        ("/home/someone/project/train.py", True),
        ("<ipython-input-3-abc>", True),
        ("<stdin>", True),
        ("<frozen importlib._bootstrap>", False),
        ("<string>", False),
        ("<eval_with_key>.0", False),
        (os.__file__, False),
        (str(LIBRARY / "somebody" / "model.py"), False),
        ("/usr/lib/python3/dist-packages/somebody/model.py", False),
        (str(PACKAGE / "training" / "tape.py"), False),
        (str(PACKAGE / "casebook" / "log-of-zero" / "repro.py"), True),
    ],
)
def test_whose_file_it_is(file: str, verdict: bool) -> None:
    assert frames.is_user(file) is verdict


def test_a_package_run_with_m_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_user_roots", [])
    monkeypatch.setattr(frames, "_verdicts", {})
    inside = str(LIBRARY / "trainer" / "main.py")
    assert frames.is_user(inside) is False
    frames.claim(str(LIBRARY / "trainer"))
    assert frames.is_user(inside) is True
    assert frames.is_user(str(LIBRARY / "trainer2" / "main.py")) is False


def here() -> frames.Line | None:
    """As a probe does it: the line above the one that asks."""
    return frames.user_line()


def test_the_innermost_user_line() -> None:
    above = here()
    assert above is not None
    assert (above.file, above.function) == (__file__, "test_the_innermost_user_line")
    own = frames.user_line(0)
    assert own is not None
    assert own.line == above.line + 3


def test_through_library_frames() -> None:
    import json

    found = []

    class Odd:
        pass

    def default(value: object) -> int:
        frame = frames.user_frame(sys._getframe(1))  # as seen from inside the library
        found.append(frames.line_of(frame))
        return 0

    json.JSONEncoder(default=default).encode(Odd())
    assert found[0] is not None
    assert found[0].function == "test_through_library_frames"
    assert found[0].line == sys._getframe().f_lineno - 3


def test_nothing_is_the_users() -> None:
    assert frames.line_of(frames.user_frame(None)) is None


def test_a_script_on_the_command_line(tmp_path: Path) -> None:
    """The line under `osler.watch()` of a module that lies in a folder like site-packages is the caller's."""
    package = tmp_path / "site-packages" / "helper"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import sys\nfrom osler.core import frames\ndef where():\n    return frames.line_of(frames.user_frame(sys._getframe()))\n"
    )
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """\
            import helper
            def main():
                return helper.where()
            print(main())
            """
        )
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site-packages")}
    done = subprocess.run(
        [sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == str(frames.Line(str(script), 3, "main"))
    assert site.getsitepackages() is not None
