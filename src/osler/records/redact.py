"""Taking out of a report what should not leave the machine: secrets, home folders, names of hosts and users."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

HIDDEN = "***"

# `--hub-token`, `WANDB_API_KEY`, `db.password`; not `tokenizer`, `--max-tokens`, nor the `attn.key` of a model.
_NAME = re.compile(
    r"passw(?:or)?d|passphrase|pgpass|secret(?!ar)|(?:api|access|private)[-_]?key|credential"
    r"|token(?:$|[^a-z])|(?:^|[^a-z])auth(?:$|[^a-z])|[a-z0-9][-_]key$|(?:^|[^a-z])(?:pwd|pass)$",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NOT_SECRET = re.compile(
    r"(?:^|[^a-z])(?:pad|eos|bos|unk|mask|sep|cls|special|sort|primary|foreign)[-_]?(?:token|key)", re.I
)

_ASSIGNED = re.compile(
    r"""(?P<name>--?[\w.-]+|[A-Za-z_][\w.-]*)(?P<sep>["']?(?:=|:\s?))(?P<value>"[^"]*"|'[^']*'|[^\s,;'"]+)"""
)
_FOLLOWED = re.compile(r"(?P<name>--?[A-Za-z][\w.-]*)(?P<sep>\s+)(?P<value>\"[^\"]*\"|'[^']*'|[^\s'\"-][^\s'\"]*)")
_URL = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)[^\s/@]+@", re.IGNORECASE)
# The shapes in which well-known services hand out their keys.
_SHAPES = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|sk-[\w-]{16,}"
    r"|xox[abprs]-[\w-]{10,}|A[KS]IA[A-Z0-9]{16}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_HOMES = re.compile(r"(?<![\w.~-])(?:/(?:home|Users)/[^/\s:'\",;]+|/root(?=/|$|[\s:'\",;]))")
_WHO = {"host", "hostname", "node", "nodename", "user", "username", "login", "fqdn", "ip"}


def is_secret_name(name: str) -> bool:
    """Whether what goes by that name (an option, a variable, a key) looks like a secret."""
    name = _CAMEL.sub("_", name)
    return bool(_NAME.search(name)) and not _NOT_SECRET.search(name)


class Redactor:
    """Redacts reports.

    Args:
        environ: the environment whose secrets are looked for in every text, usually `os.environ`.
        home: the user's home folder; `/home/<name>`, `/Users/<name>` and `/root` count as homes too.
    """

    def __init__(self, environ: Mapping[str, str] | None = None, home: Path | None = None) -> None:
        environ = os.environ if environ is None else environ
        self._values = sorted(
            {v for k, v in environ.items() if is_secret_name(k) and len(v) >= 6}, key=len, reverse=True
        )
        text = str(home if home is not None else Path.home()).rstrip("/")
        self._home = (
            re.compile(r"(?<![\w.~-])" + re.escape(text) + r"(?=/|$|[\s:'\",;)])")
            if text.count("/") >= 1 and text
            else None
        )

    def text(self, text: str) -> str:
        """One string, without secrets and home folders."""
        for value in self._values:
            text = text.replace(value, HIDDEN)
        text = _URL.sub(rf"\g<scheme>{HIDDEN}@", text)
        text = _BEARER.sub(rf"\1 {HIDDEN}", text)
        text = _SHAPES.sub(HIDDEN, text)
        text = _FOLLOWED.sub(_hide, text)
        text = _ASSIGNED.sub(_hide, text)
        if self._home is not None:
            text = self._home.sub("~", text)
        return _HOMES.sub("~", text)

    def command(self, words: Iterable[str]) -> list[str]:
        """A command's words; the value of an option may be a word of its own."""
        out: list[str] = []
        hide = False
        for word in words:
            option = word.startswith("-") and not word[1:2].isdigit()
            if hide and not option:
                out.append(HIDDEN)
                hide = False
                continue
            name, equals, _ = word.partition("=")
            if equals and is_secret_name(name):
                out.append(f"{name}={HIDDEN}")
            else:
                out.append(self.text(word))
            hide = option and not equals and is_secret_name(word)
        return out

    def value(self, value: object) -> object:
        """A copy of JSON-ready data, redacted at every level: values under secret names, command lines, texts."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(k)): self._under(str(k), v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            if value and all(isinstance(v, str) for v in value):
                return self.command([str(v) for v in value])
            return [self.value(v) for v in value]
        return value

    def _under(self, key: str, value: object) -> object:
        if isinstance(value, str) and (is_secret_name(key) or key.lower() in _WHO):
            return HIDDEN
        return self.value(value)


def _hide(match: re.Match[str]) -> str:
    if not is_secret_name(match["name"]):
        return match[0]
    return f"{match['name']}{match['sep']}{HIDDEN}"
