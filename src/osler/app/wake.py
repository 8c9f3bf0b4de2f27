"""What the start-up hook calls in every Python process of a watched run.

It joins the journal with the probes and the guards, but only when their library arrives: a process that imports neither
torch nor scikit-learn pays for this module and for two finders on `sys.meta_path`, and leaves nothing behind.
"""

from __future__ import annotations

import os
import sys

from osler.core.guard import when_imported
from osler.core.runfolder import DISABLE, PLAN, RUN_DIR
from osler.training import boot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from osler.core.guard import Guard
    from osler.core.settings import Settings
    from osler.data.preprocess.patches import Patches
    from osler.records.journal import Journal

    Watched = tuple[Journal, Settings, Mapping[str, object]]

AWAKE = "awake"  # an empty file in the run's folder: at least one process came through here

_awake = False


def wake() -> None:
    """Get ready to watch this process, if it belongs to a watched run. Never raises; a second call does nothing."""
    global _awake
    run_dir = os.environ.get(RUN_DIR)
    if _awake or not run_dir or os.environ.get(DISABLE):
        return
    _awake = True
    try:
        try:
            os.close(os.open(f"{run_dir}/{AWAKE}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError:
            pass  # a full or read-only disk: the journal says so when there is something to keep
        watched = _Process(run_dir)
        when_imported("sklearn", lambda module: watched.guard_preprocessing())
        boot.wait(watched.train)
    except Exception as error:
        boot.step_aside(f"waking up failed ({type(error).__name__}: {error})")


class _Process:
    """One journal, one plan, for all that watches this process."""

    def __init__(self, run_dir: str) -> None:
        self._run_dir = run_dir
        self._watched: Watched | None = None
        self._trains = False

    def train(self) -> Watched:
        """What a Session needs; it closes the journal."""
        self._trains = True
        return self._shared()

    def guard_preprocessing(self) -> None:
        """scikit-learn is there: watch it from the first use of an estimator on. Never raises."""
        try:
            from sklearn.base import BaseEstimator

            from osler.data.preprocess.patches import install_late

            install_late(BaseEstimator, self._guard)
        except Exception as error:
            self._without_guard(error)

    def _guard(self, wrappers: Patches) -> None:
        try:
            from osler.data.preprocess.watcher import Watcher

            journal, settings, options = self._shared()
            guard: Guard = Watcher(wrappers=wrappers)
            guard.attach(journal, settings, options)
            if not self._trains:
                journal.awake(None)
            self._close_at_exit(guard, journal)
        except Exception as error:
            self._without_guard(error)

    def _close_at_exit(self, guard: Guard, journal: Journal) -> None:
        import atexit

        pid = os.getpid()

        def close() -> None:
            if os.getpid() != pid:
                return
            guard.close()
            if self._trains:
                journal.flush()
            else:
                journal.close(0)

        atexit.register(close)

    def _without_guard(self, error: Exception) -> None:
        line = f"the preprocessing guard could not start ({type(error).__name__}: {str(error)[:200]})"
        try:
            if self._watched is not None:
                self._watched[0].not_checked("preprocess-leak", line)
                self._watched[0].note(f"osler: {line}; the script goes on without it")
            elif sys.__stderr__ is not None:
                sys.__stderr__.write(f"osler: {line.encode('ascii', 'backslashreplace').decode()}\n")
                sys.__stderr__.flush()
        except Exception:
            pass  # a closed stderr: nothing is left to say it with

    def _shared(self) -> Watched:
        if self._watched is None:
            import json

            from osler.core import settings
            from osler.records.journal import Journal

            with open(f"{self._run_dir}/{PLAN}", encoding="utf-8") as file:  # noqa: PTH123 - pathlib is a costly import
                plan = json.load(file)
            tree = settings.build(plan["settings"])
            # The journal notices a fork by itself; the Session tells it as well.
            self._watched = Journal(self._run_dir, tree.records.flush_s), tree, plan["options"]
        return self._watched
