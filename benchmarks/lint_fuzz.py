"""Random mutations of real files: `osler lint` must never crash on them.

    python benchmarks/lint_fuzz.py --count 1000 --seed 1

Tokens of files of the standard library and of site-packages are deleted, doubled, swapped and replaced; two thirds of
the outcomes are kept only if they parse, so that the interpreter sees them too. Prints what failed, and how many parsed.
As many mutations that parse are made of the rules' own fixtures, where there is something to mend: every fix, unsafe ones
too, must give a file that parses, and change nothing when it is made again.
"""

from __future__ import annotations

import argparse
import ast
import io
import random
import site
import sys
import sysconfig
import tempfile
import time
import tokenize
import warnings
from pathlib import Path

from osler.lint.fix import mend
from osler.lint.linter import Linter
from osler.lint.plan import Plan
from osler.lint.result import Noted

FIXTURES = Path(__file__).resolve().parents[1] / "tests/lint/fixtures"
PLAN = Plan(torch=(2, 6))
_TRIES = 12
_LARGEST = 60_000
_PACKAGES = ("torch", "sklearn", "lightning", "transformers", "accelerate", "ignite")


def sources() -> list[Path]:
    """Files to mutate: of the standard library and of what trains models in site-packages."""
    folders = [Path(sysconfig.get_path("stdlib"))]
    folders += [Path(s) / name for s in site.getsitepackages() for name in _PACKAGES]
    found = []
    for folder in folders:
        files = [f for f in folder.rglob("*.py") if "site-packages" not in f.parts or folder.name in _PACKAGES]
        found += sorted(f for f in files if f.stat().st_size < _LARGEST)
    return found


def mutated(text: str, chance: random.Random) -> str:
    """The text with one to six of its tokens deleted, doubled, swapped with another or replaced by one."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    try:
        tokens = [
            (starts[t.start[0] - 1] + t.start[1], starts[t.end[0] - 1] + t.end[1])
            for t in tokenize.generate_tokens(io.StringIO(text).readline)
            if t.string.strip()
        ]
    except (tokenize.TokenError, SyntaxError, IndexError):
        return text
    edits: dict[tuple[int, int], str] = {}
    for _ in range(chance.randint(1, 6)):
        if len(tokens) < 3:
            break
        one, other = chance.choice(tokens), chance.choice(tokens)
        what = chance.randrange(4)
        if what == 0:
            edits[one] = ""
        elif what == 1:
            edits[one] = f"{text[slice(*one)]} {text[slice(*one)]}"
        else:
            edits[one] = text[slice(*other)]
            if what == 3:
                edits[other] = text[slice(*one)]
    out, at = [], 0
    for (start, end), put in sorted(edits.items()):
        if start >= at:
            out += [text[at:start], put]
            at = end
    return "".join(out) + text[at:]


def crashes(files: list[Path], count: int, seed: int) -> list[str]:
    """The lines of what failed among so many mutations, in a folder of their own."""
    chance = random.Random(seed)
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutated.py"
        for _ in range(count):
            original = chance.choice(files)
            try:
                text = original.read_text("utf-8")
            except ValueError:
                continue
            state = chance.getstate()
            new = _parsing(text, chance) if chance.random() < 2 / 3 else mutated(text, chance)
            path.write_text(new, "utf-8", errors="surrogatepass")
            try:
                result = Linter(PLAN).lint(str(path))
            except Exception as error:
                failed.append(f"{original} (state {hash(state)}): {type(error).__name__}: {error}")
                continue
            failed += [f"{original}: {t.message}" for t in result.troubles if t.ours or "longer" in t.message]
            TALLY["parsed" if result.read else "not parsed"] += 1
    return failed


def broken_fixes(count: int, seed: int) -> list[str]:
    """What went wrong when mutated fixtures were mended."""
    files = [f.with_name(f.name.replace("_fix.", "_bad.")) for f in sorted(FIXTURES.glob("*_fix.py"))]
    chance = random.Random(seed)
    failed = []
    for _ in range(count):
        original = chance.choice(files)
        old = _parsing(original.read_text("utf-8"), chance).encode()
        mended = mend("mutated.py", (), _every, PLAN, data=old)
        if mended.new == old:
            continue
        TALLY["mended"] += 1
        try:
            ast.parse(mended.new)
        except (SyntaxError, ValueError) as error:
            failed.append(f"{original}: a fix broke it: {error}")
            continue
        if mend("mutated.py", (), _every, PLAN, data=mended.new).new != mended.new:
            failed.append(f"{original}: mended twice it is not as mended once")
    return failed


def _every(noted: list[Noted], results: object) -> list[Noted]:
    return [n for n in noted if n.fix is not None]


TALLY = {"parsed": 0, "not parsed": 0, "mended": 0}


def _parsing(text: str, chance: random.Random) -> str:
    for _ in range(_TRIES):
        new = mutated(text, chance)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(new)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return new
    return text


def main() -> None:
    """Mutate, look, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    wishes = parser.parse_args()
    files = sources()
    start = time.process_time()
    failed = crashes(files, wishes.count, wishes.seed) + broken_fixes(wishes.count, wishes.seed)
    for line in failed:
        print(line)
    print(f"{wishes.count} mutations of {len(files)} files (seed {wishes.seed}), {TALLY['parsed']} parsed,")
    print(f"{wishes.count} of the rules' fixtures, in {TALLY['mended']} of which something was mended,")
    print(f"{len(failed)} failed, {time.process_time() - start:.0f} CPU s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
