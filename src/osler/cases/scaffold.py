"""A new case folder: it runs as it is, and is INVALID until its author has put the fault in."""

from __future__ import annotations

import json
from pathlib import Path

from osler.app.errors import UserError
from osler.cases.library import CASE_FILE, SCRIPT
from osler.cases.model import NAME

_CASE = """\
# Every TODO is yours to fill in. `osler cases verify ID --casebook FOLDER` says what is still missing.

[case]
id = {id}
title = "TODO: the fault, in one line of plain words"
detects = [{rule}]
source = "TODO: where the fault was seen or is described: a link, a paper, an issue"
cost_s = 3                       # seconds that both sides take together
needs = ["torch"]                # packages; also cuda, linux, root

[inject]
flag = "--faulty"
exit_code = 0                    # how the faulty side ends in plain Python

[in_effect]
# A comparison over the names in evidence.json: true with --faulty, false with --clean.
expr = "measured > 1.0"          # TODO

[expect]
# Also possible: direction = "forward", module = "net.2", parameter = "net.2.weight". Steps count from 0.
finding = {{ rule = {rule}, root = true, by_step = 0 }}     # TODO: the step
# also = ["other-rule"]          # further causes that the faulty side may show

[twin]
flag = "--clean"
"""

_REPRO = '''\
"""TODO: what goes wrong here, and how the twin avoids it."""

import argparse
import json

import torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    side = parser.add_mutually_exclusive_group(required=True)
    side.add_argument("--faulty", action="store_true")
    side.add_argument("--clean", action="store_true")
    faulty = parser.parse_args().faulty

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    x = torch.randn(64, 8)
    y = x[:, :1] - 0.5 * x[:, 1:2]

    # TODO: measure with plain torch, without osler, what proves that the fault is there.
    measured = 0.0
    for _ in range(20):
        optimizer.zero_grad()
        prediction = model(x)
        if faulty:
            # TODO: the faulty line; the marker stays on it.
            loss = ((prediction - y) ** 2).mean()  # fault-here
        else:
            loss = ((prediction - y) ** 2).mean()
        loss.backward()
        optimizer.step()

    # Strict JSON: write a number that is not finite as the string "NaN", "Infinity" or "-Infinity".
    with open("evidence.json", "w") as file:
        json.dump({"measured": measured, "last_loss": loss.item()}, file)


if __name__ == "__main__":
    main()
'''


def scaffold(id: str, rule: str, parent: Path) -> Path:
    """Make the folder `parent/id` with a case for `rule` that is ready to be filled in.

    Raises:
        UserError: the id is no name, the folder exists, or nothing can be written there.
        osler.catalogue.UnknownRule: there is no such rule.
    """
    from osler.catalogue import rule as known_rule

    if not NAME.fullmatch(id):
        raise UserError(f"{id!r} is no name for a case; use small letters, digits and single hyphens")
    name = known_rule(rule).name
    folder = parent / id
    try:
        folder.mkdir(parents=True)
        (folder / CASE_FILE).write_text(_CASE.format(id=json.dumps(id), rule=json.dumps(name)), encoding="utf-8")
        (folder / SCRIPT).write_text(_REPRO, encoding="utf-8")
    except FileExistsError:
        raise UserError(f"{folder} exists already; choose another id or --dir") from None
    except OSError as err:
        raise UserError(f"{folder} cannot be made: {err.strerror}") from None
    return folder
