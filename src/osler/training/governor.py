"""The overhead budget: the recorder measures its own cost and thins what is expensive to stay inside.

Never dropped: the check for non-finite numbers and the events of the training loop. What may be thinned is the tape (the
exact line of a fault) and the close looks at activations; how much of it was let go is in the report.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from osler.core.settings import Budget

_SMOOTH = 0.1  # weight of the newest step in the running means: about the last twenty steps count
_AIM = 0.7  # share of the allowance that is aimed at: part of the cost falls where no clock of the recorder's runs
_BURST = 8  # steps recorded whole after a trip on a step that was not: many faults repeat


@dataclass(slots=True)
class Costs:
    """Running means in nanoseconds per step."""

    step: float = 0.0
    always: float = 0.0
    tape: float = 0.0


class Governor:
    """Decides for each step whether the tape runs and whether it is looked at closely."""

    def __init__(self, budget: Budget, unlimited: bool, sample_every: int) -> None:
        self._budget = budget
        self._unlimited = unlimited
        self._sample_every = sample_every
        self.costs = Costs()
        self.steps = 0
        self.taped_steps = 0
        self.looks = 0
        self.spent_ns = 0.0
        self.total_ns = 0.0
        self._start = (0.0, 0.0)
        self._burst = 0
        self._next_tape = 0
        self._next_look = 0
        self._look_gap = 0
        self.tape_on = True
        self.look_on = True

    @property
    def ratio(self) -> float:
        """Measured share of the training's own time that watching took."""
        own = self.total_ns - self.spent_ns
        return self.spent_ns / own if own > 0 else 0.0

    @property
    def settled_ratio(self) -> float | None:
        """The same after the first steps, which are recorded whole; None until there are as many again."""
        if self.steps < 2 * self._budget.full_steps:
            return None
        spent, total = self.spent_ns - self._start[0], self.total_ns - self._start[1]
        return spent / (total - spent) if total > spent else None

    @property
    def every(self) -> int:
        """The tape runs on one step in this many."""
        if self._unlimited or self.costs.step <= 0:
            return 1
        room = _AIM * self.allowance(self.costs.step) - self.costs.always
        if self.costs.tape <= max(room, 0.0):
            return 1
        # Where detection alone has used up the allowance, a twentieth of it still buys an exact line now and then.
        room = max(room, 0.05 * self.allowance(self.costs.step))
        return max(1, min(1000, math.ceil(self.costs.tape / max(room, 1.0))))

    @property
    def whole(self) -> bool:
        """Whether the step under way is recorded from its very beginning, not only from its first forward."""
        return self._unlimited or self.steps < self._budget.full_steps or self._burst > 0

    def allowance(self, step_ns: float) -> float:
        """Nanoseconds that watching may take of a step that takes `step_ns` by itself."""
        b = self._budget
        return max(b.fraction * step_ns, min(b.short_step_us * 1e3, b.short_step_fraction * step_ns))

    def due(self, more: int) -> bool:
        """Whether, `more` steps on, the tape or a close look is to be switched on."""
        at = self.steps + more
        return at >= self._next_tape or at >= self._next_look

    def steps_done(self, count: int, wall_ns: float, always_ns: float, tape_ns: float, look_ns: float) -> None:
        """Account for steps and decide on the next one.

        Args:
            count: how many steps; more than one only where neither tape nor look was on.
            wall_ns: time since the last account, everything included.
            always_ns, tape_ns, look_ns: what detection, the tape and a close look took of it.
        """
        spent = always_ns + tape_ns + look_ns
        if self.steps > 0:
            # Evaluation, checkpoints and pauses between steps are the user's time too, but no step's.
            self.spent_ns += spent
            self.total_ns += max(wall_ns, spent)
            if self.steps <= self._budget.full_steps:
                self._start = (self.spent_ns, self.total_ns)
            c = self.costs
            own = max(wall_ns - spent, 1.0) / count
            own = min(own, 10 * c.step) if c.step else own
            share = min(1.0, _SMOOTH * count)
            c.step += (share if c.step else 1.0) * (own - c.step)
            c.always += (share if c.always else 1.0) * (always_ns / count - c.always)
            if self.tape_on:
                c.tape += (share if c.tape else 1.0) * (tape_ns - c.tape)
        self.steps += count
        self.taped_steps += self.tape_on
        if self.look_on:
            self.looks += 1
            self._schedule_look(look_ns)
        self._decide()

    def tripped(self) -> None:
        """A number went bad: record the next steps whole."""
        self._burst = _BURST
        self.tape_on = True

    def _decide(self) -> None:
        if self._unlimited or self.steps < self._budget.full_steps or self._burst > 0:
            self._burst = max(0, self._burst - 1)
            self.tape_on = True
            self._next_tape = self.steps + 1
        else:
            self.tape_on = self.steps >= self._next_tape
            if self.tape_on:
                self._next_tape = self.steps + self.every
        self.look_on = self.steps >= self._next_look

    def _schedule_look(self, look_ns: float) -> None:
        dense = next((s for s in (1, 2, 4, 8, 16, 24, 32, 40, 48) if s >= self.steps), None)
        if dense is not None:
            self._next_look = dense
            return
        gap = self._sample_every
        if not self._unlimited and self.costs.step > 0:
            # A tenth of the budget is for close looks.
            gap = max(gap, math.ceil(10 * look_ns / (self._budget.fraction * self.costs.step)))
            gap = min(gap, 100 * self._sample_every)
        self._next_look = self.steps + gap

    def figures(self) -> dict[str, float | int | str]:
        """For the report."""
        figures: dict[str, float | int | str] = {
            "ratio": round(1.0 + self.ratio, 6),
            "seconds": round(self.spent_ns / 1e9, 6),
            "steps": self.steps,
            "step_ms": round(self.costs.step / 1e6, 4),
            "detection_us": round(self.costs.always / 1e3, 2),
            "tape_us": round(self.costs.tape / 1e3, 2),
            "taped_steps": self.taped_steps,
            "looks": self.looks,
            "budget": "none" if self._unlimited else f"{self._budget.fraction:.4g}",
            "full_steps": self._budget.full_steps,
        }
        settled = self.settled_ratio
        if settled is not None and not self._unlimited:
            figures["settled_ratio"] = round(1.0 + settled, 6)
        return figures
