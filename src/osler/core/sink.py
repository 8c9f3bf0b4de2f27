"""Where the parts send what they find. The parts never print and never choose where things are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from osler.core.finding import Finding


class Sink(Protocol):
    """Receives what a part has to say. No method may raise: a sink that cannot store keeps the rest in memory."""

    def awake(self, torch: str | None) -> None:
        """torch of that version has been imported and the probes are in place; None: another library is watched."""

    def finding(self, finding: Finding) -> None:
        """A new finding. It is on disk when this returns, where there is a disk."""

    def again(self, key: str, count: int, last_step: int | None) -> None:
        """The finding of that key was seen again: its total count and the last step."""

    def points(self, series: str, steps: Sequence[int], values: Sequence[float]) -> None:
        """More points of a curve (`loss`, `learning_rate`, `gradient_norm` …)."""

    def matrix(self, series: str, rows: Sequence[str], steps: Sequence[int], values: Sequence[Sequence[float]]) -> None:
        """More columns of a heat map: `values[i][j]` belongs to `steps[i]` and `rows[j]`.
        A negative value says that there was none; norms and magnitudes have no other use for it."""

    def not_checked(self, what: str, why: str) -> None:
        """A rule, or a thing, that could not be judged, and the reason in one sentence."""

    def overhead(self, figures: Mapping[str, float | int | str]) -> None:
        """The watcher's own cost so far; the last call holds (`ratio`, `seconds`, `steps`, `step_ms`, …)."""

    def environment(self, facts: Mapping[str, object]) -> None:
        """Facts about the process: torch build, devices, seeds, threads."""

    def layers(self, rows: Sequence[Mapping[str, object]]) -> None:
        """The module calls of one step: `module`, `kind`, `inputs`, `outputs` (shape, dtype, device, …), `flags`."""

    def note(self, text: str) -> None:
        """One line for the user, shown once on stderr."""

    def folder(self, name: str) -> Path | None:
        """A folder to write files in (`dumps`), made with mode 0700; None where nothing can be written."""

    def flush(self) -> None:
        """Write out what is buffered."""

    def close(self, steps: int) -> None:
        """The process ends after that many optimizer steps."""
