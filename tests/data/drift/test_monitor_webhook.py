"""The webhook: delivered, retried, given up, and never in the way."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from osler.core.settings.monitor import Monitor
from osler.data.drift.monitor import DriftMonitor
from osler.data.drift.webhook import Webhook

QUICK = dataclasses.replace(Monitor(), webhook_pause=0.01, webhook_timeout=0.5)


class Receiver:
    """A loopback server that answers with the given codes in turn, the last for good."""

    def __init__(self) -> None:
        self.codes = [200]
        self.wait = 0.0
        self.bodies: list[Any] = []
        self.headers: list[dict[str, str]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.bodies.append(json.loads(body))
                receiver.headers.append(dict(self.headers))
                time.sleep(receiver.wait)
                code = receiver.codes.pop(0) if len(receiver.codes) > 1 else receiver.codes[0]
                self.send_response(code)
                if code == 302:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    out = Receiver()
    yield out
    out.server.shutdown()
    out.server.server_close()


def test_delivered(receiver: Receiver) -> None:
    hook = Webhook(receiver.url, QUICK, headers={"X-Token": "t"})
    assert hook.send({"a": 1, "b": float("nan")})
    assert hook.close()
    assert receiver.bodies == [{"a": 1, "b": "NaN"}]
    assert receiver.headers[0]["Content-Type"] == "application/json"
    assert receiver.headers[0]["X-Token"] == "t"
    assert (hook.delivered, hook.failed) == (1, 0)
    assert not hook.send({})  # closed


def test_tried_again_after_a_server_error(receiver: Receiver) -> None:
    receiver.codes = [500, 503, 200]
    hook = Webhook(receiver.url, QUICK)
    hook.send({})
    assert hook.close()
    assert len(receiver.bodies) == 3
    assert hook.delivered == 1


@pytest.mark.parametrize(("code", "attempts"), [(404, 1), (302, 1), (429, 4), (500, 4)])
def test_given_up(receiver: Receiver, code: int, attempts: int) -> None:
    receiver.codes = [code]
    hook = Webhook(receiver.url, QUICK)
    hook.send({})
    assert hook.close()
    assert len(receiver.bodies) == attempts
    assert hook.failed == 1


def test_a_slow_receiver_times_out_and_does_not_hold_the_service(receiver: Receiver) -> None:
    receiver.wait = 1.0
    hook = Webhook(receiver.url, dataclasses.replace(QUICK, webhook_timeout=0.1, webhook_retries=0, webhook_queue=2))
    began = time.perf_counter()
    sent = [hook.send({"i": i}) for i in range(10)]
    assert time.perf_counter() - began < 0.5
    assert not all(sent)
    assert hook.dropped == sent.count(False)
    assert hook.close(3)
    assert hook.failed == sent.count(True)


def test_nobody_listens(caplog: pytest.LogCaptureFixture) -> None:
    hook = Webhook("http://user:password@127.0.0.1:9/secret", dataclasses.replace(QUICK, webhook_retries=1))
    hook.send({})
    assert hook.close()
    assert hook.failed == 1
    assert "password" not in caplog.text
    assert "secret" not in caplog.text


def test_a_monitor_tells_it_of_a_run(receiver: Receiver) -> None:
    rng = np.random.default_rng(0)
    monitor = DriftMonitor({"a": rng.standard_normal(3000)}, window=200, webhook=receiver.url)
    monitor.update({"a": rng.standard_normal(1000) + 2})
    monitor.close()
    (body,) = receiver.bodies
    assert body["event"] == "resample"
    assert body["run"] == 3
    assert body["columns"][0]["column"] == "a"
    assert body["columns"][0]["reasons"] == ["distribution"]
    assert body["window"] == {"index": 2, "start": 400, "end": 600, "rows": 200}
