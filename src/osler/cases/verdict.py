"""The verdict on a case or a healthy script: what was found, and whether that is what should have been."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any


class Outcome(str, Enum):
    """What a verification came to; of several failures the first in this order is the outcome.

    CRASHED: the script did not end as it does in plain Python, osler failed, or it took too long.
    INVALID: the fault was not there (or its twin has it too), so the run proves nothing.
    MISSED: the rule was not reported.
    WRONG_ROOT: it was reported, but as the symptom of something else.
    NOISY: a healthy side was not silent, or the faulty one has causes that nobody expects.
    LATE: it was first seen after the step that the case allows.
    WRONG_LINE: it was reported at another place than the marked line, module, parameter or direction.
    SKIPPED: something that it needs is not here.
    PASS: all is as it should be.
    """

    CRASHED = "CRASHED"
    INVALID = "INVALID"
    MISSED = "MISSED"
    WRONG_ROOT = "WRONG_ROOT"
    NOISY = "NOISY"
    LATE = "LATE"
    WRONG_LINE = "WRONG_LINE"
    SKIPPED = "SKIPPED"
    PASS = "PASS"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Outcome).index(self)

    @property
    def failed(self) -> bool:
        """Whether it makes `osler cases verify` fail."""
        return self not in (Outcome.SKIPPED, Outcome.PASS)


@dataclass(slots=True)
class Verdict:
    """One case, or one healthy script, under one budget.

    Attributes:
        id: the case or script.
        budget: `none` or `default`.
        outcome: what it came to.
        reason: one sentence, why; empty for PASS.
        kind: `case` or `healthy`.
        rule: the rule expected; empty for a healthy script.
        rule_right: the rule was reported, as a root where that is expected. None: not known.
        line_right: it was reported at the marked line. None: not known.
        step: the optimizer step at which it was first seen.
        silent: the twin, or the healthy script, gave no warning, no error, and not the case's own rules.
        seconds: wall time of all sides together.
        found: where it was reported, as `file:line`.
        extra_roots: other roots of warning or above on the faulty side that the case does not list.
        overhead: the ratio that osler measured itself, of the faulty side or the healthy script.
        reasons: every failure, one sentence each.
        resumed: taken over from an interrupted verification.
    """

    id: str
    budget: str
    outcome: Outcome
    reason: str = ""
    kind: str = "case"
    rule: str = ""
    rule_right: bool | None = None
    line_right: bool | None = None
    step: int | None = None
    silent: bool | None = None
    seconds: float = 0.0
    found: str = ""
    extra_roots: list[str] = field(default_factory=list)
    overhead: float | None = None
    reasons: list[str] = field(default_factory=list)
    resumed: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        out: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        out["outcome"] = self.outcome.value
        out["seconds"] = round(self.seconds, 3)
        return out

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Verdict:
        """The reverse of `to_dict`.

        Raises:
            KeyError, TypeError, ValueError: it is not what `to_dict` gives.
        """
        return cls(**{**data, "outcome": Outcome(data["outcome"])})
