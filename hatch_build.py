"""Puts the start-up hook beside the package, in wheels and in editable installs alike."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Sorts after the `_editable_impl_osler.pth` of an editable install: by then `import osler` works.
HOOK = {"hook/osler-wake.pth": "osler-wake.pth"}


class WakeHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds `osler-wake.pth` at the root of the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the hook file to whichever kind of wheel is being built."""
        key = "force_include_editable" if version == "editable" else "force_include"
        build_data[key].update(HOOK)
