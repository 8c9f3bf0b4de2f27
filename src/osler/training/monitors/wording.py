"""The sentences of the findings about numbers: what happened with the number and the place, and what to write instead."""

from __future__ import annotations

from osler.core.finding import Where
from osler.training.classify import Verdict
from osler.training.monitors.common import number
from osler.training.origin import Origin, bare


def _place(where: Where) -> str:
    parts = []
    if where.module:
        parts.append(f"in {where.module}")
    if where.sample is not None:
        parts.append(f"sample {where.sample}" + (f" of batch {where.batch}" if where.batch is not None else ""))
    return f" ({', '.join(parts)})" if parts else ""


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


def sentence_for(verdict: Verdict, origin: Origin, where: Where, evidence: dict[str, object]) -> str:
    """One sentence: the number, the place."""
    facts, name = verdict.facts, verdict.op.function or bare(verdict.op.name)
    tensor = f"{where.tensor}, the input of {name}," if where.tensor else f"the input of {name}"
    step, place = where.step, _place(where)
    backward = where.direction == "backward"
    text = {
        "log-of-zero": lambda: (
            f"At step {step} {tensor} holds {_count(verdict.count, 'value', 'values')} of 0 or below{place}"
            + (
                ": the derivative there is infinite and the gradient became NaN or Inf"
                if backward
                else ": its logarithm is -Inf or NaN"
            )
        ),
        "divide-by-zero": lambda: (
            (
                f"At step {step} {name} divides by zero in {_count(max(verdict.count, 1), 'element', 'elements')}{place}"
                if "averaged_over" not in facts
                else f"At step {step} {name} averages over nothing{place}: 0/0"
            )
            + (", in the backward pass" if backward else "")
        ),
        "sqrt-at-zero": lambda: (
            f"At step {step} {name} is differentiated at 0 in {_count(max(verdict.count, 1), 'element', 'elements')}{place}: "
            "the forward value is finite, the gradient is not"
        ),
        "exp-overflow": lambda: (
            f"At step {step} {name} is given {number(facts.get('largest'))}{place}, beyond {number(facts.get('limit'))} its result is Inf"
        ),
        "all-masked-softmax": lambda: (
            f"At step {step} {facts.get('rows_masked')} of {facts.get('rows')} rows that {name} normalises hold nothing but -inf{place}"
        ),
        "too-few-samples": lambda: (
            f"At step {step} {name} is taken over {_count(int(facts.get('samples', 0) or 0), 'element', 'elements')}{place}: with correction "  # type: ignore[call-overload]
            f"{number(facts.get('correction'))} that is 0/0"
        ),
        "half-overflow": lambda: (
            f"At step {step} {'the gradient at ' if backward else ''}{name} goes beyond {facts.get('dtype')}'s largest value {number(facts.get('limit'))}{place}"
            + (f": the value is {number(facts['largest'])}" if "largest" in facts else "")
            + (", in the backward pass" if backward else "")
        ),
        "nonfinite-op": lambda: (
            f"At step {step} {name} turns finite inputs into NaN or Inf{place}"
            + (" in its derivative" if backward else "")
        ),
    }[verdict.rule]()
    if origin.spread is not None and bare(origin.spread.name) != bare(origin.op.name):
        text += f"; {bare(origin.spread.name)} then makes NaN of it"
    if "update_step" in evidence and "largest_weight" in evidence:
        text += (
            f"; the weights reach {number(evidence['largest_weight'])} since the update of step {evidence['update_step']} "
            f"with learning rate {number(evidence['learning_rate'])}"
        )
    return text + "."


def fix_for(verdict: Verdict, evidence: dict[str, object], tensor: str | None) -> str:
    """What to write instead, for this occurrence."""
    x = tensor or "x"
    name = (verdict.op.function or bare(verdict.op.name)).rstrip("_")
    if "update_step" in evidence and "largest_weight" in evidence and verdict.rule in ("nonfinite-op", "exp-overflow"):
        return (
            f"The weights blew up at step {evidence['update_step']}: lower the learning rate (then {number(evidence['learning_rate'])}) "
            "or clip the gradient norm before optimizer.step()."
        )
    fixes = {
        "log-of-zero": (
            f"torch.{name if name in ('log', 'log2', 'log10') else 'log'}({x}.clamp_min(1e-8)), or work with log-probabilities from "
            "log_softmax / logsigmoid; inside torch.where guard the argument too, not only the result."
        ),
        "divide-by-zero": (
            "Keep the divisor away from zero, a / b.clamp_min(1e-8) (F.normalize has its own eps), or skip what is empty before dividing."
            if "averaged_over" not in verdict.facts
            else "Skip the mean when nothing is left to average (all targets ignored, an empty mask), or divide the sum by count.clamp_min(1)."
        ),
        "sqrt-at-zero": (
            f"torch.sqrt({x} + 1e-12): the eps goes inside the root; a clamp or where behind it does not help the gradient."
        ),
        "exp-overflow": (
            "Subtract the maximum first, or use torch.softmax / log_softmax / logsumexp, which do; clamp the argument where it has no bound."
        ),
        "all-masked-softmax": (
            "Leave at least one entry open in each row (a query whose keys are all padding has no answer), or fill such rows "
            "with 0 before the softmax and zero the result."
        ),
        "too-few-samples": ("Use correction=0, skip batches of one, or drop_last=True in the DataLoader."),
        "half-overflow": (
            "Keep this operation in float32 (with torch.autocast(device_type, enabled=False): and .float()), scale it down, or use bfloat16."
        ),
        "nonfinite-op": (
            f"Keep the argument of {name} inside the domain where its value and derivative are finite (clamp it before the call)."
        ),
    }
    return fixes[verdict.rule]
