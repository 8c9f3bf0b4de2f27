"""Runs a script, `-m module` or `-c code` in an interpreter that does not have osler, as if osler were installed there.

    PYTHON [interpreter options] …/osler/app/trampoline.py script.py args…

This file is run by path. It takes the `osler` package, and nothing that lies beside it, from where this file is, wakes
it up, and then makes way: `__main__`, `sys.argv`, `sys.path`, tracebacks and exit codes are those of plain Python.
Processes that the script starts by `spawn` are plain again and not watched.
"""

# pathlib stays unimported until the script asks for it
# ruff: noqa: PTH100, PTH109, PTH112, PTH113, PTH118, PTH120, PTH123

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType, TracebackType
    from typing import Any


def _own_module(name: str, path: str, folder: str | None = None) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(name, path, submodule_search_locations=[folder] if folder else None)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def run(target: list[str]) -> None:
    """Wake osler up, then run the target in `__main__`.

    Args:
        target: the script's path, `-m module` or `-c code`, with the arguments that follow.
    """
    import os

    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        _own_module("osler", os.path.join(root, "__init__.py"), root)
        from osler.app.wake import wake

        wake()
    except Exception as error:
        sys.modules.pop("osler", None)
        sys.stderr.write(f"osler: cannot watch in {sys.executable} ({type(error).__name__}: {error})\n")
    try:
        _run(target)
    except SystemExit:
        raise
    except BaseException:
        _hide_own_frames()
        raise


def _run(target: list[str]) -> None:
    import os

    main = sys.modules["__main__"].__dict__
    # This file was started as a script, so `__main__` holds exactly what this version of Python puts there.
    kept = {k: v for k, v in main.items() if k in _DUNDERS}
    main.clear()
    main.update(kept, __doc__=None)
    if "__annotations__" in main:
        main["__annotations__"] = {}
    first, rest = target[0], target[1:]
    if first == "-m":
        import runpy

        _first_on_path(os.getcwd())
        sys.argv[:] = ["-m", *rest[1:]]
        runpy._run_module_as_main(rest[0])  # type: ignore[attr-defined]
    elif first == "-c":
        from importlib.machinery import BuiltinImporter

        _first_on_path("")
        sys.argv[:] = ["-c", *rest[1:]]
        main.pop("__file__", None)
        main.pop("__cached__", None)
        main["__loader__"] = BuiltinImporter
        exec(compile(rest[0], "<string>", "exec", dont_inherit=True), main)
    elif _is_archive(first):
        import runpy

        sys.argv[:] = target
        sys.path.insert(0, os.path.join(os.getcwd(), first))  # also under -I, as Python does
        runpy._run_module_as_main("__main__", False)  # type: ignore[attr-defined]
    else:
        _first_on_path(os.path.dirname(os.path.realpath(first)))
        sys.argv[:] = target
        path = os.path.join(os.getcwd(), first)
        main["__file__"] = path
        exec(_code(path, main) or "", main)


_DUNDERS = frozenset(
    f"__{name}__" for name in ("name", "doc", "package", "loader", "spec", "annotations", "builtins", "file", "cached")
)


def _code(path: str, main: dict[str, Any]) -> CodeType | None:
    from importlib.machinery import SourceFileLoader, SourcelessFileLoader

    if path.endswith(".pyc"):
        loader = main["__loader__"] = SourcelessFileLoader("__main__", path)
        return loader.get_code("__main__")
    main["__loader__"] = SourceFileLoader("__main__", path)
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        sys.stderr.write(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}\n")
        raise SystemExit(2) from None
    return compile(source, path, "exec", dont_inherit=True)


def _is_archive(path: str) -> bool:
    import os

    if os.path.isdir(path):
        return True
    if path.endswith((".py", ".pyc")) or not os.path.isfile(path):
        return False
    import zipfile

    return zipfile.is_zipfile(path)


def _first_on_path(folder: str) -> None:
    if not _safe_path():
        sys.path.insert(0, folder)


def _safe_path() -> bool:
    """Whether Python puts nothing before the standard library (`-I`, `-P`)."""
    return bool(sys.flags.isolated or getattr(sys.flags, "safe_path", False))


def _hide_own_frames() -> None:
    """Leave this file out of the traceback that Python is about to print."""
    hook = sys.excepthook

    def show(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        sys.excepthook = hook
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        hook(kind, value.with_traceback(trace), trace)

    sys.excepthook = show


if __name__ == "__main__":
    if not _safe_path():
        del sys.path[0]  # this file's folder
    # What follows empties this module's namespace, so it must not run in it.
    _own_module("osler.app.trampoline", __file__).run(sys.argv[1:])
