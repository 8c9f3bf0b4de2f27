"""`osler check monitor`: drift watched window by window, with a state that outlives the process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from osler.app.check import Wishes, bar, show, understood
from osler.app.ignores import apply


def watch(
    reference: str,
    current: str,
    *,
    window: str,
    every: str | None,
    time: str | None,
    columns: Sequence[str] | None,
    webhook: str | None,
    state: Path | None,
    wishes: Wishes,
) -> int:
    """Feed the current data to a monitor and show what it has found.

    Returns:
        1 where fresh samples are due or a finding is at or above `fail_on`, else 0.

    Raises:
        UserError: the data or the state cannot be read.
    """
    from osler.data.drift import DriftMonitor
    from osler.data.tables import open_source

    loaded = wishes.settings()
    wishes.outputs.check()
    with understood(), bar(wishes.quiet) as progress:
        if state is not None and state.exists():
            monitor = DriftMonitor.load(state, webhook=webhook, autosave=state)
        else:
            monitor = DriftMonitor(
                reference,
                window=_size(window),
                every=_size(every),
                columns=columns,
                time=time,
                settings=loaded.settings,
                webhook=webhook,
                autosave=state,
            )
        source = open_source(current)
        done = 0
        for batch in source.batches():
            monitor.update(batch)
            done += batch.num_rows
            progress("rows", done, source.rows)
        monitor.close()
        if state is not None:
            monitor.save(state)
        report = apply(monitor.report(), loaded.settings)
    return show(report, loaded.settings, wishes) or monitor.exit_code


def _size(text: str | None) -> Any:
    """A number of rows, or a span of time as it was written."""
    return int(text) if text is not None and text.isdigit() else text
