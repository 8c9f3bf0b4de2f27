"""`osler schema`: the JSON schema of a report."""

from __future__ import annotations

import json


def text() -> str:
    """The schema as indented JSON, ending in a newline."""
    from osler.render.schema import schema

    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
