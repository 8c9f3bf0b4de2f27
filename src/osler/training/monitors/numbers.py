"""Numbers that stop being numbers: from a trip to the cause, by way of the replay."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

import torch

from osler.core.finding import Confidence, Finding, Severity, Where
from osler.core.frames import Line
from osler.training import private
from osler.training.classify import Verdict
from osler.training.deep import Op
from osler.training.monitors.common import number
from osler.training.monitors.wording import fix_for, sentence_for
from osler.training.naming import module_of
from osler.training.optimizers import OptimizerWatch, StepRecord, really_bad
from osler.training.recorder import Recorder, Trip
from osler.training.replay import Leaf, Replayed, replay, roots_of, vanishes_without
from osler.training.tape import Segment, tensors_in
from osler.training.values import bad, describe, first_index


class NumberMonitor:
    """Replays the failing step and words what it finds."""

    detects: ClassVar[tuple[str, ...]] = (
        "log-of-zero",
        "divide-by-zero",
        "sqrt-at-zero",
        "exp-overflow",
        "all-masked-softmax",
        "too-few-samples",
        "half-overflow",
        "nonfinite-input",
        "nonfinite-parameter",
        "nonfinite-op",
    )

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._writer: Any = None
        self.unlocated = 0
        self._bad_gradients: set[tuple[int, int]] = set()  # optimizer and step

    def trip(self, trip: Trip) -> list[Finding]:
        """The findings of a failing step: one cause."""
        more = trip.watch.parameters if trip.watch is not None else []
        if trip.watch is not None:
            self._bad_gradients.add((trip.watch.number, trip.step))
        parameters = self._bad_parameters(trip)
        if parameters:
            return [self._parameters(trip, parameters)]
        names = self._recorder.names.parameters()
        best: Replayed | None = None
        for segment in trip.segments:
            writer = self._new_writer(segment)
            result = replay(segment, names, more, writer)
            if result.reproduced or result.verdict is not None or result.leaf is not None:
                finding = self._finding(trip, result, more)
                if writer is not None:
                    self._dump(writer, finding, result, trip)
                return [finding]
            best = result
        return [self._unlocated(trip, best)]

    # --- the bundle

    def _new_writer(self, segment: Segment) -> Any:
        if not self._recorder.options.get("dump", True) or not self._recorder.settings.dump.enabled:
            return None
        from osler.training.dump import BundleWriter

        return BundleWriter(segment, self._recorder.names, self._recorder.settings.dump.max_mb)

    def _dump(self, writer: Any, finding: Finding, result: Replayed, trip: Trip) -> None:
        folder = self._recorder.sink.folder("dumps")
        if folder is None:
            return
        try:
            path = writer.write(folder, finding, result, trip.step)
        except Exception as error:
            # The dump is an extra: whatever stops it (a full disk, an exotic tensor) is said, and the finding stands.
            self._recorder.sink.not_checked("dump of the failing step", f"{type(error).__name__}: {error}")
            return
        if path is not None:
            finding.evidence["dump"] = self._shown(path)
        if writer.gave_up:
            self._recorder.sink.not_checked("replay of the dump in another process", str(writer.gave_up))

    def _shown(self, path: Path) -> str:
        """The path as one would type it: relative to the working directory where it lies below it."""
        try:
            return str(path.resolve().relative_to(Path(str(self._recorder.options.get("cwd") or Path.cwd())).resolve()))
        except (ValueError, OSError):
            return str(path)

    # --- weights that are bad before the step

    def _bad_parameters(self, trip: Trip) -> list[tuple[str, str, torch.Tensor]]:
        """Parameters that hold a NaN or an infinity. Buffers are left to the replay: the failing step's own forward may
        have written to them (running statistics) before anything was checked."""
        found: dict[int, tuple[str, str, torch.Tensor]] = {}
        names = self._recorder.names
        for root in [*(r for s in trip.segments for r in roots_of(s)), *names.roots()]:
            for name, weight in root.named_parameters():
                if bad(weight):
                    found.setdefault(id(weight), ("parameter", names.parameter(weight) or name, weight))
        if trip.watch is not None:
            for i, p in enumerate(trip.watch.parameters):
                if bad(p):
                    found.setdefault(id(p), ("parameter", trip.watch.names(names)[i], p))
        return list(found.values())

    def _parameters(self, trip: Trip, found: list[tuple[str, str, torch.Tensor]]) -> Finding:
        kind, name, tensor = found[0]
        watch = self._owner(trip, tensor)
        counts = bad(tensor)
        elements = f"{counts.nan + counts.inf} of {tensor.numel()} elements"
        line = self._first_use(trip)
        evidence: dict[str, object] = {
            kind: name,
            "tensor": describe(tensor),
            "tensors_affected": len(found),
            "elements": counts.nan + counts.inf,
        }
        last = self._last_update(trip, watch)
        loaded = max((self._recorder.loaded_at.get(id(r), -1) for s in trip.segments for r in roots_of(s)), default=-1)
        # An optimizer that takes a closure writes to the weights between two calls of it: that is no outsider's doing.
        outside = watch is not None and not watch.closure and watch.written_since_step()
        if last is None or outside or trip.step == 0 or kind == "buffer":
            message = f"{elements} of {kind} {name} were NaN or Inf before step {trip.step} began"
            if loaded >= max(trip.step, 0):
                message += ": they came with load_state_dict"
            elif outside and last is not None:
                message += f": something other than {watch.label if watch else 'the optimizer'} wrote to them after step {last.step}"
            fix = (
                "Look at where these weights come from: check the checkpoint with torch.isfinite on every tensor before "
                "load_state_dict, or the initialisation that fills them."
            )
        else:
            assert watch is not None
            message = f"{elements} of {kind} {name} are NaN or Inf since the update of step {last.step}, "
            evidence |= {"update_step": last.step, "learning_rate": last.lr, "gradient_norm": last.norm}
            line = watch.line or line
            if math.isnan(last.norm) or (watch.number, last.step) in self._bad_gradients:
                message += "whose gradient was already not finite"
                fix = (
                    f"Mend what made the gradient of step {last.step} NaN or Inf; no learning rate helps against it. "
                    "clip_grad_norm_ with error_if_nonfinite=True stops before such an update is applied."
                )
            else:
                message += f"applied with learning rate {number(last.lr)} to a gradient of norm {number(last.norm)}"
                fix = (
                    f"Lower the learning rate (here {number(last.lr)}) or clip the gradient norm before the step; "
                    "see the learning_rate and gradient_norm curves for what changed."
                )
        touches = {f"parameter:{n}" for _, n, _ in found} | {f"module:{module_of(n)}" for _, n, _ in found}
        if watch is not None:
            touches.add(f"optimizer:{watch.number}")
        return Finding(
            "nonfinite-parameter",
            Severity.ERROR,
            Confidence.DEFINITE,
            message + ".",
            self._where(trip, line, module=module_of(name) or None, parameter=name),
            evidence,
            fix,
            None,
            trip.step,
            trip.step,
            1,
            frozenset(touches),
        )

    def _owner(self, trip: Trip, tensor: torch.Tensor) -> OptimizerWatch | None:
        """The optimizer that updates a parameter; the one whose step it is where none does."""
        watches = [trip.watch] if trip.watch is not None else []
        watches += self._recorder.optimizers.values()
        return next((w for w in watches if any(p is tensor for p in w.parameters)), trip.watch)

    def _last_update(self, trip: Trip, watch: OptimizerWatch | None) -> StepRecord | None:
        """The last step that an optimizer applied before the one that failed."""
        if watch is None:
            return None
        steps = list(watch.history)
        if steps and watch is trip.watch and steps[-1].step >= trip.step:
            steps.pop()  # the failing one, kept already
        if self._recorder.scaling:
            steps = [s for s in steps if math.isfinite(s.norm)]  # the others were skipped
        return steps[-1] if steps else None

    def _first_use(self, trip: Trip) -> Line | None:
        for segment in trip.segments:
            for entry in segment.entries:
                if entry.root:
                    return entry.line
            return segment.line
        return None

    # --- a cause found by the replay

    def _finding(self, trip: Trip, result: Replayed, more: Any) -> Finding:
        if result.leaf is not None and result.leaf.kind != "input":
            return self._parameters(trip, [(result.leaf.kind, result.leaf.name, result.leaf.tensor)])
        if result.leaf is not None:
            return self._input(trip, result, result.leaf, more)
        verdict, origin = result.verdict, result.origin
        assert verdict is not None and origin is not None
        op = verdict.op
        line = origin.op.line if origin.op.backward and origin.op.line is not None else self._line(op, result)
        tensor = self._operand_name(op, verdict, result)
        evidence: dict[str, object] = {"operation": op.name, "function": op.function, **verdict.facts}
        evidence["inputs"] = [describe(i.tensor) for i in op.inputs[:4]]
        if origin.op is not op:
            evidence["backward_operation"] = origin.op.name
            evidence["autograd_node"] = origin.op.node
        if origin.spread is not None:
            evidence["first_nan_at"] = origin.spread.name
        sample = self._sample(verdict, result.segment)
        if verdict.count:
            evidence["elements"] = verdict.count
            evidence["first_index"] = verdict.index
        evidence |= self._what_led_here(trip, result, op)
        evidence["replay_ms"] = round(result.seconds * 1e3, 1)
        if result.why_not:
            evidence["not_reproduced"] = result.why_not
        place = self._where(
            trip,
            line,
            module=op.module,
            tensor=tensor,
            sample=sample,
            op=op.name,
            direction="backward" if result.backward else "forward",
        )
        message = sentence_for(verdict, origin, place, evidence)
        confidence = Confidence.DEFINITE if result.reproduced else Confidence.PROBABLE
        confirmed = result.guarded if result.reproduced else None
        return Finding(
            verdict.rule,
            Severity.ERROR,
            confidence,
            message,
            place,
            evidence,
            fix_for(verdict, evidence, tensor),
            confirmed,
            trip.step,
            trip.step,
            1,
            self._touches(trip, result, op),
        )

    def _line(self, op: Op, result: Replayed) -> Line | None:
        for each in (op, op.forward):
            if each is not None and each.line is not None:
                return each.line
            if each is not None and each.entry is not None and each.entry.line is not None:
                return each.entry.line
        return result.segment.line

    def _input(self, trip: Trip, result: Replayed, leaf: Leaf, more: Any) -> Finding:
        counts = bad(leaf.tensor)
        op = result.origin.op if result.origin is not None else None
        line = self._line(op, result) if op is not None else (leaf.entry.line if leaf.entry else result.segment.line)
        mask = ~torch.isfinite(leaf.tensor.detach())
        index = first_index(mask)
        rows = int(mask.flatten(1).any(1).sum()) if mask.dim() > 1 else counts.nan + counts.inf
        column = self._column(mask)
        batch = leaf.tensor.shape[0] if leaf.tensor.dim() else 1
        what = "NaN" if counts.nan else "Inf"
        sample = index[0] if index else None
        message = (
            f"{leaf.name} holds {counts.nan + counts.inf} {what} value{'s' if counts.nan + counts.inf > 1 else ''} "
            f"in {rows} of {batch} samples" + (f" (first: sample {sample}" if sample is not None else "")
        )
        if sample is not None:
            message += f", column {column})" if column is not None else ")"
        confirmed = vanishes_without(result.segment, more, leaf) if result.reproduced else None
        evidence: dict[str, object] = {
            "tensor": describe(leaf.tensor),
            "first_index": index,
            "samples": rows,
            "batch_size": batch,
            "replay_ms": round(result.seconds * 1e3, 1),
        }
        if result.why_not:
            evidence["not_reproduced"] = result.why_not
        place = self._where(
            trip,
            line,
            tensor=leaf.name,
            sample=sample,
            column=column,
            direction="forward",
            module=op.module if op is not None else None,
        )
        touches = self._touches(trip, result, op) | ({f"column:{column}"} if column is not None else set())
        return Finding(
            "nonfinite-input",
            Severity.ERROR,
            Confidence.DEFINITE if result.reproduced else Confidence.PROBABLE,
            message + ".",
            place,
            evidence,
            "Find where the data gets it (a missing value read as NaN, a division in the preprocessing) and impute or drop "
            "the sample there; torch.isfinite(batch).all() in the dataset shows it at once.",
            confirmed,
            trip.step,
            trip.step,
            1,
            touches,
        )

    @staticmethod
    def _column(mask: torch.Tensor) -> str | None:
        if mask.dim() != 2:
            return None
        columns = mask.any(0).nonzero().flatten().tolist()
        return str(columns[0]) if len(columns) == 1 else None

    def _sample(self, verdict: Verdict, segment: Segment) -> int | None:
        index = verdict.index
        if not index or verdict.culprits is None:
            return None
        size = _batch_size(segment)
        return index[0] if size is not None and verdict.culprits.shape[0] == size else None

    def _operand_name(self, op: Op, verdict: Verdict, result: Replayed) -> str | None:
        if len(op.inputs) <= verdict.operand:
            return None
        tensor = op.inputs[verdict.operand].tensor
        return result.names.get(private.storage_key(tensor))

    def _what_led_here(self, trip: Trip, result: Replayed, op: Op) -> dict[str, object]:
        """The update that blew the weights up, where the weights that went in are far larger than they were."""
        watch = trip.watch
        if watch is None or len(watch.history) < 2:
            return {}
        roots = roots_of(result.segment)
        largest = max((float(p.detach().abs().max()) for r in roots for p in r.parameters() if p.numel()), default=0.0)
        suspect = _jump(watch)
        if largest < 1e3 or suspect is None:
            return {}
        return {
            "largest_weight": largest,
            "update_step": suspect.step,
            "learning_rate": suspect.lr,
            "gradient_norm_then": suspect.norm,
        }

    def _touches(self, trip: Trip, result: Replayed, op: Op | None) -> frozenset[str]:
        touches = set()
        if trip.watch is not None:
            touches.add(f"optimizer:{trip.watch.number}")
            names = trip.watch.names(self._recorder.names)
            touches |= {f"parameter:{names[i]}" for i in really_bad(trip.watch.parameters)}
        for root in roots_of(result.segment):
            touches |= {f"parameter:{self._recorder.names.parameter(p)}" for p in root.parameters()}
        if op is not None and op.module:
            touches.add(f"module:{op.module}")
        return frozenset(touches)

    # --- a cause not found

    def _unlocated(self, trip: Trip, result: Replayed | None) -> Finding:
        self.unlocated += 1
        why = (
            result.why_not or "the replay found nothing"
            if result is not None
            else "the operations of this step were not recorded, to stay inside the overhead budget"
        )
        if result is None and self._recorder.options.get("budget_none"):
            why = "no forward pass of this step was seen (torch.func transforms and manual gradients are not recorded)"
        names = trip.watch.names(self._recorder.names) if trip.watch is not None else []
        broken = [names[i] for i in really_bad(trip.watch.parameters)] if trip.watch is not None else []
        loss = self._recorder.last_loss
        subject = f"the gradient of {broken[0]} is" if broken else "the loss is"
        if broken and len(broken) > 1:
            subject = f"the gradients of {len(broken)} parameters, {broken[0]} first, are"
        evidence: dict[str, object] = {"not_located": why, "parameters": broken[:8]}
        if loss is not None:
            evidence["loss"] = loss
        line = (
            trip.segments[-1].line
            if trip.segments
            else (self._recorder.last_line or (trip.watch.line if trip.watch else None))
        )
        module = module_of(broken[-1]) if broken else None
        touches = frozenset(
            {f"parameter:{b}" for b in broken} | ({f"optimizer:{trip.watch.number}"} if trip.watch else set())
        )
        return Finding(
            "nonfinite-op",
            Severity.ERROR,
            Confidence.DEFINITE,
            f"At step {trip.step} {subject} not finite; the operation is not known: {why.rstrip('.')}.",
            self._where(trip, line, module=module),
            evidence,
            "Run again with --budget none (and the same seed) to get the operation and its line.",
            None,
            trip.step,
            trip.step,
            1,
            touches,
        )

    def _where(self, trip: Trip, line: Line | None, **more: Any) -> Where:
        r = self._recorder
        return Where(
            file=line.file if line else None,
            line=line.line if line else None,
            function=line.function if line else None,
            step=trip.step,
            epoch=r.epoch,
            batch=r.batch,
            rank=_rank(),
            **more,
        )


def _jump(watch: OptimizerWatch) -> Any:
    """The recent step whose update was out of line: where lr * gradient norm stood out most from the steps before."""
    steps = list(watch.history)[:-1]
    best, best_ratio = None, 10.0
    for i in range(1, len(steps)):
        before = sorted(s.lr * s.norm for s in steps[max(0, i - 16) : i])
        level = before[len(before) // 2]
        size = steps[i].lr * steps[i].norm
        if math.isfinite(size) and level > 0 and size / level > best_ratio:
            best, best_ratio = steps[i], size / level
    return best


def _batch_size(segment: Segment) -> int | None:
    for entry in segment.entries:
        if entry.root:
            for t in tensors_in((entry.args, entry.kwargs)):
                if t.dim():
                    return int(t.shape[0])
    for entry in segment.entries:
        for t in tensors_in(entry.args):
            if t.dim() and not t.requires_grad:
                return int(t.shape[0])
    return None


def _rank() -> int | None:
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank())
    return None
