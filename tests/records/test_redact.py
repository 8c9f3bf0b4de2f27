from __future__ import annotations

from pathlib import Path

import pytest

from osler.records.redact import Redactor, is_secret_name

REDACTOR = Redactor({"WANDB_API_KEY": "0123456789abcdef", "SHORT_TOKEN": "abc", "PATH": "/usr/bin"}, Path("/home/ada"))


SECRET = """token --token --hub-token hub_token hubToken HFTOKEN WANDB_API_KEY AWS_SECRET_ACCESS_KEY X_KEY --password
    db.passwd --api-key apikey credentials --auth client_secret PGPASS PGPASSWORD MYSQL_PWD"""
HARMLESS = """tokenizer --max-tokens num_tokens keyboard keys --lr passes author key_padding_mask pad_token eos-token
    bos_token_id authors monkey compass bypass turkey secretary key attn.key cls_token sort_key"""


@pytest.mark.parametrize("name", SECRET.split())
def test_secret_names(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", HARMLESS.split())
def test_names_that_are_none(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["train.py", "--token=abc", "--lr", "1"], ["train.py", "--token=***", "--lr", "1"]),
        (["--password", "hunter2", "x"], ["--password", "***", "x"]),
        (["--password", "--lr", "3"], ["--password", "--lr", "3"]),
        (["-p", "3", "--api-key", "-1"], ["-p", "3", "--api-key", "***"]),
        (["env", "MY_KEY=v", "A=b"], ["env", "MY_KEY=***", "A=b"]),
        (["--header", "Authorization: Bearer abcdefghijkl"], ["--header", "Authorization: Bearer ***"]),
        (["https://ada:pw@example.org/x"], ["https://***@example.org/x"]),
        (["--data", "/home/ada/x", "/home/adam/y", "/root"], ["--data", "~/x", "~/y", "~"]),
        (["--max-tokens", "5", "--tokenizer=gpt2"], ["--max-tokens", "5", "--tokenizer=gpt2"]),
        (["0123456789abcdef"], ["***"]),
        (["--config", '{"token": "zzz"}'], ["--config", '{"token": ***}']),
    ],
)
def test_commands(words: list[str], expected: list[str]) -> None:
    assert REDACTOR.command(words) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("python t.py --token=abc --lr 3", "python t.py --token=*** --lr 3"),
        ("python t.py --password hunter2 --lr 3", "python t.py --password *** --lr 3"),
        ("WANDB_API_KEY=x python t.py", "WANDB_API_KEY=*** python t.py"),
        ("password: 'two words' and", "password: *** and"),
        ("hf_abcdefghijklmnopqrstuv was refused", "*** was refused"),
        ("key ghp_abcdefghijklmnopqrstuvwxyz0123456789", "key ***"),
        ("AKIAABCDEFGHIJKLMNOP", "***"),
        ("saved 0123456789abcdef.", "saved ***."),
        ("/home/ada/train.py:12: loss", "~/train.py:12: loss"),
        ("in /home/ada", "in ~"),
        ("/home/adamant/x and /Users/bob/y", "~/x and ~/y"),
        ("/rooted/x and /data/root/x and /mnt/home/x/y", "/rooted/x and /data/root/x and /mnt/home/x/y"),
        ("abc stays", "abc stays"),
        ("token 3 of 7 in the batch", "token 3 of 7 in the batch"),
        ("log made -Infinity at step 3", "log made -Infinity at step 3"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    assert REDACTOR.text(text) == expected


def test_every_level_is_redacted() -> None:
    data = {
        "subject": {"command": ["t.py", "--token", "abc"], "cwd": "/home/ada/p", "exit_code": 0},
        "environment": {"variables": {"HF_TOKEN": "x", "LANG": "C"}, "hostname": "box", "seeds": [1, 2]},
        "findings": [
            {"where": {"file": "/home/ada/p/t.py", "tensor": "pad_token"}, "evidence": {"/home/ada/k": [1.5, None]}}
        ],
    }
    assert REDACTOR.value(data) == {
        "subject": {"command": ["t.py", "--token", "***"], "cwd": "~/p", "exit_code": 0},
        "environment": {"variables": {"HF_TOKEN": "***", "LANG": "C"}, "hostname": "***", "seeds": [1, 2]},
        "findings": [{"where": {"file": "~/p/t.py", "tensor": "pad_token"}, "evidence": {"~/k": [1.5, None]}}],
    }
