"""What all tests share."""

from __future__ import annotations

import signal

# Under nohup, or started in the background by a shell, signals are ignored and children inherit that; the tests of how
# osler hands signals on start from the dispositions that a terminal gives.
for _number, _usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)
