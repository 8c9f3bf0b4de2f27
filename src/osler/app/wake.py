"""What the start-up hook calls in every Python process of a watched run.

It joins the journal with the probes, but only when torch arrives: a process that never imports torch pays for this
module and for a finder on `sys.meta_path`, and leaves nothing behind.
"""

from __future__ import annotations

import os

from osler.core.runfolder import DISABLE, PLAN, RUN_DIR
from osler.training import boot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from osler.core.settings import Settings
    from osler.core.sink import Sink

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
        boot.wait(lambda: _prepare(run_dir))
    except Exception as error:
        boot.step_aside(f"waking up failed ({type(error).__name__}: {error})")


def _prepare(run_dir: str) -> tuple[Sink, Settings, Mapping[str, object]]:
    import json

    from osler.core import settings
    from osler.records.journal import Journal

    with open(f"{run_dir}/{PLAN}", encoding="utf-8") as file:  # noqa: PTH123 - pathlib is a costly import
        plan = json.load(file)
    tree = settings.build(plan["settings"])
    # The journal notices a fork by itself; the Session tells it as well.
    return Journal(run_dir, tree.records.flush_s), tree, plan["options"]
