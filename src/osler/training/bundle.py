"""The dump of a failing step, and repeating it from the dump in another process.

A bundle is a folder with `step.json` and `tensors.safetensors`. It holds the step as a list of dispatched `aten`
operations with their arguments, and the tensors that the step started from: inputs, targets, parameters, generator
states. Repeating it interprets that list. Nothing in a bundle is code: an operation is a name that must be one of torch's
own `aten` overloads, an argument is a number, a word from a short list, or a piece of a stored tensor.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from osler.core.finding import Finding, Where
from osler.core.frames import Line
from osler.core.jsonable import number
from osler.core.report import NotChecked, Report
from osler.training import private
from osler.training.classify import classify
from osler.training.deep import Op, Operand
from osler.training.origin import find
from osler.training.values import bad, describe, numeric

FORMAT = 1
MAX_OPERATIONS = 200_000
_MAX_JSON = 256 << 20


class BundleError(ValueError):
    """The file is no bundle that this version can repeat; the message says why."""


_DTYPES = {str(v).removeprefix("torch."): v for v in vars(torch).values() if isinstance(v, torch.dtype)}
_FORMATS = {
    "contiguous_format": torch.contiguous_format,
    "preserve_format": torch.preserve_format,
    "channels_last": torch.channels_last,
    "channels_last_3d": torch.channels_last_3d,
}
# Operations with effects beyond their tensors have no place in a training step.
_REFUSED = frozenset(
    {"aten::from_file", "aten::record_stream", "aten::_assert_async", "aten::_debug_has_internal_overlap"}
)
# The words that operations on tensors take: how to round, to reduce, to pad, which approximation or norm.
WORDS = frozenset(
    [
        "none", "tanh", "trunc", "floor", "sum", "prod", "mean", "max", "min", "amax", "amin", "median", "fro",
        "nuc", "inf", "-inf", "reduced", "complete", "r", "L", "U", "left", "right", "ij", "xy", "linear", "lower",
        "higher", "midpoint", "nearest", "constant", "reflect", "replicate", "circular", "same", "valid", "forward",
        "backward", "ortho"
    ]
)  # fmt: skip


class _Interpreter:
    """Runs the operations of a bundle and keeps an `Op` for each."""

    def __init__(self, content: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> None:
        self._content = content
        self._tensors = tensors
        self._storages: dict[int, torch.Tensor] = {}
        self._makers: dict[int, Op] = {}
        self.ops: dict[int, Op] = {}

    def run(self) -> None:
        """Interpret every operation.

        Raises:
            BundleError: the bundle asks for what it may not, or does not fit together.
        """
        operations = self._content["operations"]
        if not isinstance(operations, list) or len(operations) > MAX_OPERATIONS:
            raise BundleError("its list of operations is malformed")
        with torch.no_grad():
            for record in operations:
                if not isinstance(record, dict):
                    raise BundleError("an operation is malformed")
                self._one(record)

    def _one(self, record: dict[str, Any]) -> None:
        if "rng" in record:
            state = self._tensors.get(f"rng.{record['rng']}")
            if state is None or state.dtype != torch.uint8:
                raise BundleError("a generator state is missing")
            torch.default_generator.set_state(state)
        overload = _overload(str(record.get("op")))
        args, kwargs = record.get("args"), record.get("kwargs")
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            raise BundleError("an operation's arguments are malformed")
        args, kwargs = self._decode(args), {str(k): self._decode(v) for k, v in kwargs.items()}
        leaves = private.leaves((args, kwargs))
        operands = [t for t in leaves if isinstance(t, torch.Tensor) and numeric(t)]
        inputs = [Operand(t, self._makers.get(private.storage_key(t)), bad(t)) for t in operands]
        schema = private.schema_of(overload)
        if schema.is_mutable:
            for operand in inputs:
                operand.tensor = operand.tensor.clone()
        try:
            output = overload(*args, **kwargs)
        except Exception as error:
            raise BundleError(
                f"{record['op']} failed: {str(error).splitlines()[0] if str(error) else error!r}"
            ) from None
        made = [t for t in private.leaves(output) if isinstance(t, torch.Tensor)]
        results = record.get("out")
        if not isinstance(results, list) or len(results) != len(made):
            raise BundleError(f"{record['op']} gave {len(made)} tensors, {results!r} were recorded")
        op = Op(
            int(record.get("index", len(self.ops))),
            schema.name,
            bool(record.get("backward")),
            inputs,
            [],
            [float(a) for a in leaves if isinstance(a, (int, float)) and not isinstance(a, bool)][:8],
            _line(record.get("line")),
            record.get("module"),
            None,
            record.get("node"),
            self.ops.get(int(record["forward"])) if "forward" in record else None,
            None,
            record.get("function"),
            {k: v for k, v in kwargs.items() if k in ("correction", "unbiased", "p", "dim", "keepdim")},
            bool(record.get("own")),
        )
        for place, t in zip(results, made):
            self._storages[int(place)] = t
            if numeric(t):
                op.outputs.append(Operand(t, op, bad(t)))
                self._makers[private.storage_key(t)] = op
        self.ops[op.index] = op

    def _decode(self, value: Any) -> Any:
        if isinstance(value, str) and value not in WORDS:
            raise BundleError(f"an argument is the word {value[:40]!r}")
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, list):
            return [self._decode(v) for v in value]
        if not isinstance(value, dict):
            raise BundleError("an argument is malformed")
        if set(value) == {"s", "o", "z", "t", "d"}:
            return self._piece(value)
        if set(value) == {"f"}:
            return number(value["f"])
        if set(value) == {"dtype"} and value["dtype"] in _DTYPES:
            return _DTYPES[value["dtype"]]
        if set(value) == {"device"}:
            # What ran on a GPU is repeated on the CPU: the same operations, other rounding.
            return torch.device("cpu")
        if set(value) == {"layout"}:
            return torch.strided
        if set(value) == {"memory_format"} and value["memory_format"] in _FORMATS:
            return _FORMATS[value["memory_format"]]
        raise BundleError("an argument is malformed")

    def _piece(self, value: dict[str, Any]) -> torch.Tensor:
        place, dtype = value["s"], _DTYPES.get(value["d"])
        size, stride, offset = value["z"], value["t"], value["o"]
        numbers = [place, offset, *size, *stride]
        if dtype is None or not all(isinstance(n, int) and n >= 0 for n in numbers) or len(size) != len(stride):
            raise BundleError("a tensor is malformed")
        base = self._storages.get(place)
        if base is None:
            base = self._tensors.get(f"s{place}")
            if base is None:
                raise BundleError(f"tensor {place} is missing")
            self._storages[place] = base
        if base.dtype != dtype:
            raise BundleError("a tensor is read under two dtypes")
        last = offset + sum((n - 1) * s for n, s in zip(size, stride)) if all(size) else offset
        if (last + 1) * base.element_size() > base.untyped_storage().nbytes() and all(size):
            raise BundleError("a tensor reaches beyond its memory")
        return torch.as_strided(base, size, stride, offset)


def _overload(name: str) -> Any:
    qualified, _, overload = name.rpartition(".")
    namespace, _, op = qualified.partition("::")
    if namespace != "aten" or not op.isidentifier() or not (overload.isidentifier() or overload == "default"):
        raise BundleError(f"{name[:60]!r} is not an aten operation")
    if qualified in _REFUSED:
        raise BundleError(f"{qualified} is refused")
    packet: Any = getattr(torch.ops.aten, op, None)
    if not isinstance(packet, type(torch.ops.aten.add)) or overload not in packet.overloads():
        raise BundleError(f"torch {torch.__version__} has no operation {name}")
    found = getattr(packet, overload)
    schema = private.schema_of(found)
    if not any("Tensor" in str(a.type) for a in [*schema.arguments, *schema.returns]):
        raise BundleError(f"{name} is no operation on tensors")  # saving, warning, seeding, text
    return found


def _line(value: Any) -> Line | None:
    if isinstance(value, list) and len(value) == 3 and isinstance(value[1], int):
        return Line(str(value[0]), value[1], str(value[2]))
    return None


def read(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The content of a bundle, nothing of it executed.

    Raises:
        OSError: a file cannot be read.
        BundleError: it is no bundle.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    if path.is_file():
        path = path.parent
    file = path / "step.json"
    if not file.is_file():
        raise BundleError(f"{path} is no bundle: it has no step.json")
    if file.stat().st_size > _MAX_JSON:
        raise BundleError(f"{file} is larger than {_MAX_JSON >> 20} MiB")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{file} is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise BundleError(f"{file} is not of format {FORMAT}")
    try:
        tensors = load((path / "tensors.safetensors").read_bytes())
    except SafetensorError as error:
        raise BundleError(f"{path / 'tensors.safetensors'} is damaged: {error}") from None
    return content, tensors


def replay_bundle(path: Path | str) -> Report:
    """Repeat the step of a bundle and look for the origin again.

    Returns:
        A report of one finding: the recorded one when the same operation goes bad again (`confirmed` as recorded),
        else what was found instead. `subject["same_cause"]` says which.

    Raises:
        OSError: a file cannot be read.
        BundleError: it is no bundle, or it cannot be repeated here.
    """
    path = Path(path)
    content, tensors = read(path)
    try:
        finding = Finding.from_dict(content["finding"])
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise BundleError(f"its finding is malformed: {type(error).__name__}: {error}") from None
    report = Report({"kind": "replay", "command": ["osler", "replay", str(path)], "step": content.get("step")})
    if not content.get("operations"):
        report.findings.append(finding)
        report.subject["same_cause"] = None
        why = content.get("gave_up") or "the step was not recorded"
        report.not_checked.append(NotChecked("repeating the step", str(why), is_rule=False))
        return report
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    interpreter = _Interpreter(content, tensors)
    try:
        if isinstance(content.get("threads"), int) and 0 < content["threads"] <= 256:
            torch.set_num_threads(content["threads"])  # the order of sums depends on it
        interpreter.run()
        targets = [interpreter.ops[i] for i in content.get("targets", []) if i in interpreter.ops]
    except BundleError:
        raise
    except Exception as error:
        # The bundle is a stranger's: numbers of the wrong kind, states of the wrong size show themselves as anything.
        why = str(error).splitlines()[0] if str(error) else ""
        raise BundleError(f"it does not fit together: {type(error).__name__}: {why}") from None
    finally:
        torch.set_rng_state(state)
        torch.set_num_threads(threads)
    origin = find(targets)
    report.environment = {"torch": torch.__version__, "recorded_with": content.get("torch")}
    if origin is None:
        report.subject["same_cause"] = False
        report.notes.append(
            "the step was repeated and no number went bad; it was recorded with torch " + str(content.get("torch"))
        )
        return report
    if origin.leaf is not None:
        same = finding.rule in ("nonfinite-input", "nonfinite-parameter")
        rule = finding.rule if same else "nonfinite-input"
        facts: dict[str, object] = {"tensor": describe(origin.leaf.tensor)}
    else:
        verdict = classify(origin)
        rule, same = verdict.rule, verdict.rule == finding.rule
        facts = {"operation": origin.op.name, **verdict.facts}
    report.subject["same_cause"] = same
    report.subject["operations"] = len(interpreter.ops)
    if same:
        report.findings.append(finding)
        report.notes.append(f"repeated {len(interpreter.ops)} operations: the same cause")
    else:
        line = origin.op.line
        where = Where(file=line.file, line=line.line, function=line.function) if line else Where()
        report.findings.append(
            Finding(
                rule,
                finding.severity,
                finding.confidence,
                f"Repeating the step, {origin.op.name} goes bad first; {finding.rule} was recorded.",
                where,
                facts,
            )
        )
    return report
