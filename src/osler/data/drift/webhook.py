"""A message to another program that never blocks or breaks the one that sends it."""

from __future__ import annotations

import http.client
import logging
import os
import queue
import threading
import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from osler.core.jsonable import dumps
from osler.core.settings.monitor import Monitor
from osler.data.need import DataError

_log = logging.getLogger("osler.webhook")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the message to a host that nobody named."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class Webhook:
    """Posts JSON to a URL from a thread of its own.

    `send` puts the message into a bounded queue and returns at once. Each message is tried a few times, with twice the
    pause each time; 4xx answers other than 408 and 429 are not tried again. What cannot be delivered is logged (logger
    `osler.webhook`, with the host only, as URLs may hold a token) and counted. The thread is a daemon: it does not keep a
    process alive; call `close` to give what is waiting a last chance.

    Attributes:
        delivered, failed, dropped: messages that arrived, that were given up, and that found the queue full.
    """

    def __init__(self, url: str, settings: Monitor | None = None, headers: dict[str, str] | None = None) -> None:
        """A webhook.

        Args:
            url: http or https.
            settings: timeouts, retries and size of the queue.
            headers: beyond `Content-Type: application/json`.

        Raises:
            DataError: the URL is not http(s) or names no host.
        """
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            usable = False
        if not usable:
            raise DataError("a webhook needs a URL that begins with http:// or https:// and names a host")
        self._url = url
        self._host = str(parts.hostname)
        self._settings = settings or Monitor()
        self._headers = {"Content-Type": "application/json", "User-Agent": "osler"} | (headers or {})
        self._opener = urllib.request.build_opener(_NoRedirect)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._process = 0
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._queue: queue.Queue[bytes] = queue.Queue(self._settings.webhook_queue)
        self._thread: threading.Thread | None = None
        self.delivered = self.failed = self.dropped = 0

    def send(self, message: dict[str, object]) -> bool:
        """Queue a message; False where the queue is full or the webhook is closed. Never raises, never waits."""
        try:
            body = dumps(message).encode()
            with self._lock:
                if self._process != os.getpid():  # threads do not survive a fork
                    self._begin()
                if self._stop.is_set():
                    self.dropped += 1
                    return False
                self._queue.put_nowait(body)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="osler-webhook", daemon=True)
                    self._thread.start()
            return True
        except queue.Full:
            self.dropped += 1
        except Exception:
            self.failed += 1
            _log.exception("a message to %s could not be queued", self._host)
        return False

    def flush(self, timeout: float) -> bool:
        """Wait until nothing is queued or under way, at most `timeout` seconds; whether that was reached."""
        end = time.monotonic() + timeout
        while self._queue.unfinished_tasks:
            if time.monotonic() >= end:
                return False
            time.sleep(0.005)
        return True

    def close(self, timeout: float = 5.0) -> bool:
        """Take no more messages and wait for those that are queued, at most `timeout` seconds."""
        done = self.flush(timeout)
        self._stop.set()
        return done

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                body = self._queue.get(timeout=1.0)
            except queue.Empty:
                continue
            try:
                self._deliver(body)
            except Exception:
                self.failed += 1
                _log.exception("a message to %s was lost", self._host)
            finally:
                self._queue.task_done()

    def _deliver(self, body: bytes) -> None:
        pause = self._settings.webhook_pause
        why = ""
        for attempt in range(self._settings.webhook_retries + 1):
            if attempt and self._stop.wait(pause * 2 ** (attempt - 1)):
                break
            try:
                request = urllib.request.Request(self._url, data=body, headers=self._headers, method="POST")
                with self._opener.open(request, timeout=self._settings.webhook_timeout):
                    self.delivered += 1
                    return
            except urllib.error.HTTPError as error:
                why = f"HTTP {error.code}"
                error.close()
                if error.code < 500 and error.code not in (408, 429):
                    break
            except (OSError, http.client.HTTPException, ValueError) as error:
                why = type(error).__name__
        self.failed += 1
        _log.warning("a message to %s was not delivered: %s", self._host, why)
