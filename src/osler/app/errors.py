"""What the user can mend: shown as one line, exit code 2, never a traceback."""

from __future__ import annotations


class UserError(Exception):
    """Bad usage or unreadable input. The message is one sentence that names the place and, where there is one, the fix."""
