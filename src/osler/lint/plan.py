"""How files are looked at: apart from the rules themselves, because what is known already is handed on without them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from osler.core.settings.lint import Lint


@dataclass(frozen=True, slots=True)
class Plan:
    """How files are looked at.

    Attributes:
        torch: version to assume as (major, minor); None when nobody knows.
        settings: the limits of size and time, and what steers single rules.
    """

    torch: tuple[int, int] | None = None
    settings: Lint = field(default_factory=Lint)

    @property
    def most_bytes(self) -> int:
        """The size beyond which a source is left out."""
        return int(self.settings.max_mb * 1e6)

    @property
    def key(self) -> tuple[object, ...]:
        """What decides, besides the sources and the rules, on what is found."""
        steering = [getattr(self.settings, f.name) for f in fields(self.settings) if f.metadata["rules"]]
        return (self.torch, self.settings.max_mb, self.settings.seconds, *steering)
