"""Where in a class's source something is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from osler.syntax.classes import assignment_line, method_line

SOURCE = """\
class Net:
    def __init__(self):
        other.layers = 1
        if True:
            self.layers = [1]
        self.layers = [2]
        self.width: int = 3
        self.count = self.first = 0
        self.count += 1

    def forward(self, x):
        def forward():
            pass
        return x

    async def later(self):
        self.made_late = 1

    class Inner:
        def __init__(self):
            self.deep = 1


def factory():
    class Local(Net):
        def forward(self, x):
            return x

    return Local


class Empty(Net):
    pass
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "net.py"
    file.write_text(SOURCE, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    ("cls", "attribute", "line"),
    [
        ("Net", "layers", 5),
        ("Net", "width", 7),
        ("Net", "count", 8),
        ("Net", "first", 8),
        ("Net", "made_late", 17),
        ("Net.Inner", "deep", 21),
        ("Net", "nothing", None),
        ("Empty", "layers", None),
        ("Missing", "layers", None),
    ],
)
def test_the_first_assignment(path: str, cls: str, attribute: str, line: int | None) -> None:
    assert assignment_line(path, cls, attribute) == line


@pytest.mark.parametrize(
    ("cls", "method", "line"),
    [
        ("Net", "forward", 11),
        ("Net", "later", 16),
        ("factory.<locals>.Local", "forward", 26),
        ("Empty", "forward", None),
        ("factory", "forward", None),
    ],
)
def test_a_method(path: str, cls: str, method: str, line: int | None) -> None:
    assert method_line(path, cls, method) == line


@pytest.mark.parametrize("content", [b"class Net(:\n", b"\xff\xfe", b"x = '\x00'\n"])
def test_what_cannot_be_read_is_not_known(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "bad.py"
    file.write_bytes(content)
    assert assignment_line(str(file), "Net", "layers") is None
    assert method_line(str(tmp_path / "missing.py"), "Net", "forward") is None


def test_other_encodings(tmp_path: Path) -> None:
    file = tmp_path / "latin.py"
    file.write_bytes("# -*- coding: latin-1 -*-\nclass Nét:\n    def forward(self): pass\n".encode("latin-1"))
    assert method_line(str(file), "Nét", "forward") == 3
