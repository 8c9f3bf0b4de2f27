"""Numbers that stop being numbers: the faults that bring the first NaN or Inf into a training.

The order of the rules is that of the catalogue. Every one of them leads to `nonfinite-parameter`, because an optimizer
applies a bad gradient like any other, and to `nonfinite-op`, the same NaN seen again further along.
"""

from __future__ import annotations

from osler.core.finding import Severity
from osler.core.rule import Rule

_PART = "numbers"
_SPREADS = ("nonfinite-parameter", "nonfinite-op")

_REPLAY = (
    "osler finds the operation by running the failing step again. Compiled regions are replayed eagerly, so a NaN "
    "that only the compiled code makes is not located; a step whose input was changed through `.data` or numpy after "
    "its use is reported as not reproduced; training through `torch.func` with hand-made updates has no optimizer "
    "step and is seen only where `backward` is called. Where the overhead budget is short the exact line may be "
    "missing for a step; the report then says so. `--budget none` always gives it."
)
_GUARD_NOTE = "https://docs.pytorch.org/docs/stable/notes/autograd.html#gradients-for-non-differentiable-functions"
_WHERE = "https://github.com/pytorch/pytorch/issues/68425"

RULES: tuple[Rule, ...] = (
    Rule(
        name="log-of-zero",
        part=_PART,
        severity=Severity.ERROR,
        summary="A logarithm is taken of 0 or of a negative number, or differentiated at 0.",
        why=(
            "log(0) is -inf and the logarithm of a negative number is NaN. Neither needs an odd value in your "
            "data: probabilities reach 0 by rounding. In float32 a sigmoid is exactly 1 from a logit of about 17 "
            "on, so log(1 - p) is log(0); a softmax entry is exactly 0 once its logit lies about 104 below the "
            "largest. Then 0 * log(0), which should count as 0, is 0 * -inf = NaN, the mean over the batch is "
            "NaN, and one optimizer step makes every weight NaN.\n\n"
            "Masking the result does not help. In `torch.where(x > 0, log(x), 0)` the forward value is right, but the "
            "backward pass still goes through the branch that was not chosen: its incoming gradient is 0, the "
            "derivative 1/x is infinite, and 0 divided by 0 is NaN."
        ),
        fix=(
            "Stay in log space: give logits to `F.cross_entropy`, `F.binary_cross_entropy_with_logits`, "
            "`F.logsigmoid` or `log_softmax`, which never form the small probability. Where a logarithm must be "
            "taken, hold its input away from 0 with `x.clamp(min=eps)`, or use `log1p` for counts that can be 0. With "
            "a mask, replace the input as well as the result (the double where): first make every unwanted x a "
            "harmless 1, then take the logarithm. An epsilon must be representable: 1e-8 is 0 in float16."
        ),
        bad="p = torch.sigmoid(logit)\nloss = -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()\n",
        good="loss = F.binary_cross_entropy_with_logits(logit, y)\n",
        limits=(
            _REPLAY
            + " `osler lint` names, as information, logarithms that are taken straight of a softmax or sigmoid, or of 1 "
            "less one, in the same function."
        ),
        causes=_SPREADS,
        routes=("run", "lint"),
        links=(
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.binary_cross_entropy_with_logits.html",
            _WHERE,
            _GUARD_NOTE,
        ),
    ),
    Rule(
        name="divide-by-zero",
        part=_PART,
        severity=Severity.ERROR,
        summary="A division, reciprocal, rsqrt or normalisation has 0 below the line.",
        why=(
            "x/0 is Inf and 0/0 is NaN; torch raises nothing, unlike plain Python. The zero usually comes from one "
            "sample: an empty image whose norm is 0, a batch with no labelled row so that the sum of the mask is 0, a "
            "column that is constant. Where the quotient goes into a mean or a BatchNorm, that one sample makes the "
            "whole batch NaN. The gradient is worse than the value: the derivative of x/y by y is -x/y², so a y that "
            "is merely tiny already overflows."
        ),
        fix=(
            "Decide what the result should be where the denominator is 0. For a length: `F.normalize(x)` or `x / "
            "norm.clamp(min=eps)`, which give 0 for a zero vector. For a mean over a mask: `mask.sum().clamp(min=1)`. "
            "For a standard deviation: add eps. With `torch.where`, make the denominator safe inside too, not only "
            "the result: the gradient passes through both branches."
        ),
        bad="loss = (error * labelled).sum() / labelled.sum()\n",
        good="loss = (error * labelled).sum() / labelled.sum().clamp(min=1)\n",
        limits=_REPLAY
        + " A denominator that is tiny but not 0 is reported only when the quotient or its gradient overflows.",
        causes=_SPREADS,
        links=(
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.normalize.html",
            _WHERE,
        ),
    ),
    Rule(
        name="sqrt-at-zero",
        part=_PART,
        severity=Severity.ERROR,
        summary="A square root, a power below 1 or a distance is differentiated at 0: finite loss, bad gradient.",
        why=(
            "The slope of sqrt(x) is 1 / (2 sqrt(x)), which is infinite at 0. The forward pass shows nothing: "
            "sqrt(0) is 0 and the loss is an ordinary number. In the backward pass Inf meets the inner "
            "derivative, which is 0 there (the slope of x² at 0), and 0 * Inf is NaN. It takes two equal "
            "embeddings in a distance, a prediction that hits its target exactly in an RMSE, or an all-zero map "
            "in a generalised-mean pooling.\n\n"
            "`norm`, `std` and `torch.cdist` return 0 as their slope at 0 on current PyTorch, so they are safe where "
            "the same formula written by hand is not. Differentiated a second time, in gradient penalties and in "
            "forces, `norm` can give NaN at 0 again."
        ),
        fix=(
            "Add a small number under the root, `(x.square().sum(-1) + 1e-12).sqrt()`, or use "
            "`torch.linalg.vector_norm` or `F.pairwise_distance`. Where the squared distance would do, leave the root "
            "out. For padded or excluded pairs replace the input before the root, not the result after it: "
            "`torch.where(mask, x, 1.0).sqrt()`, then mask again."
        ),
        bad="distance = (a - b).square().sum(1).sqrt()\n",
        good="distance = ((a - b).square().sum(1) + 1e-12).sqrt()\n",
        limits=(
            _REPLAY + " A finite but very large gradient near 0 is not reported here."
            " `osler lint` names, as information, roots of a sum or mean of squared differences with nothing added "
            "under the root, outside `no_grad`."
        ),
        causes=_SPREADS,
        routes=("run", "lint"),
        links=(
            "https://github.com/pytorch/pytorch/issues/2421",
            "https://github.com/pytorch/pytorch/pull/2775",
            _GUARD_NOTE,
        ),
    ),
    Rule(
        name="exp-overflow",
        part=_PART,
        severity=Severity.ERROR,
        summary="An exponential passes the largest number that its dtype holds.",
        why=(
            "exp(x) is Inf above x = 88.72 in float32 and in bfloat16, and above 11.09 in float16. A softmax written "
            "by hand then divides Inf by Inf, which is NaN; a log-sum-exp written by hand returns Inf. Logits of that "
            "size are not exotic: a cosine of 1 over a temperature of 0.01 is 100, one feature in the wrong unit is "
            "enough, and so is a log-variance head early in the training of a VAE."
        ),
        fix=(
            "Use the form that subtracts the largest entry first: `torch.softmax`, `log_softmax`, `torch.logsumexp`, "
            "`F.softplus`, `F.cross_entropy`. For a rate or a variance, clamp its logarithm (`log_var.clamp(-10, "
            "10)`) or use softplus. If the logits should never have been that large, look at the scale of the input "
            "and at the learning rate."
        ),
        bad="e = scores.exp()\nweights = e / e.sum(-1, keepdim=True)\n",
        good="weights = scores.softmax(-1)\n",
        limits=_REPLAY
        + " When the weights were already exploding, that finding is the cause and this one its symptom.",
        causes=_SPREADS,
        links=(
            "https://docs.pytorch.org/docs/stable/generated/torch.logsumexp.html",
            "https://docs.pytorch.org/docs/stable/type_info.html",
        ),
    ),
    Rule(
        name="all-masked-softmax",
        part=_PART,
        severity=Severity.ERROR,
        summary="A softmax is taken over a row in which every entry is -inf.",
        why=(
            "Attention masks forbidden positions with -inf, and softmax turns them into a weight of 0. A row with "
            "nothing left has no weights that sum to 1: softmax subtracts the row's maximum, -inf - (-inf), and the "
            "whole row is NaN. It happens with an empty message, a query for which nothing was retrieved, or a "
            "padding mask that together with a causal or window mask leaves a position nothing to look at. That the "
            "row's output is thrown away later does not help: its gradient is 0 * NaN = NaN and reaches the shared "
            "projections."
        ),
        fix=(
            "Leave each row one entry (`mask = mask & ~mask.all(-1, keepdim=True)`, True meaning hidden) or fill with "
            "a large finite number, `torch.finfo(scores.dtype).min`, and drop the row's output afterwards. "
            "`F.scaled_dot_product_attention` gives 0 for such rows on recent PyTorch (2.5 and later); "
            "`nn.MultiheadAttention` does so only with `need_weights=False`. Or keep empty samples out of the batch."
        ),
        bad="scores = scores.masked_fill(padding, float('-inf'))\nweights = scores.softmax(-1)\n",
        good=(
            "scores = scores.masked_fill(padding, torch.finfo(scores.dtype).min)\nweights = "
            "scores.softmax(-1).masked_fill(padding, 0.0)\n"
        ),
        limits=_REPLAY + " A fused attention kernel that returns 0 for such rows makes no NaN and is not reported.",
        causes=_SPREADS,
        links=(
            "https://github.com/pytorch/pytorch/issues/41508",
            "https://github.com/pytorch/pytorch/issues/160064",
        ),
    ),
    Rule(
        name="too-few-samples",
        part=_PART,
        severity=Severity.ERROR,
        summary="A standard deviation, variance or batch statistic is taken over a single element.",
        why=(
            "torch's `std` and `var` divide by n - 1 unless told otherwise. For one element that is 0/0 = NaN, with "
            "no more than a warning about degrees of freedom. The one element is most often the last batch of an "
            "epoch: 97 samples in batches of 8 leave one over. It also comes from an episode of one step whose "
            "advantages are normalised, or from a group with one member. Adding eps to the result does not help, NaN "
            "+ eps is NaN. `nn.BatchNorm` checks for this and raises an error instead; one written by hand does not."
        ),
        fix=(
            "Pass `drop_last=True` to the DataLoader, or use `correction=0` (divide by n), which gives 0 for one "
            "element, together with eps below the line. For advantages, normalise only when there is more than one. "
            "LayerNorm or GroupNorm do not depend on the batch's size."
        ),
        bad="z = (z - z.mean(0)) / (z.std(0) + 1e-5)\n",
        good="z = (z - z.mean(0)) / (z.std(0, correction=0) + 1e-5)\n",
        limits=(
            _REPLAY + " Statistics over two or three elements are finite, if useless, and are not reported."
            " `osler lint` names, as information, a BatchNorm that is trained through a DataLoader with a batch size "
            "of 1."
        ),
        causes=_SPREADS,
        routes=("run", "lint"),
        links=(
            "https://docs.pytorch.org/docs/stable/generated/torch.std.html",
            "https://github.com/DLR-RM/stable-baselines3/issues/325",
        ),
    ),
    Rule(
        name="half-overflow",
        part=_PART,
        severity=Severity.ERROR,
        summary="A value that float32 holds is beyond the range of float16 or bfloat16.",
        why=(
            "float16 ends at 65,504; anything from 65,520 on becomes Inf when it is cast or computed. 256 squared is "
            "already too much, and so is an attention score of a few hundred times a few hundred. autocast does not "
            "protect you: it runs matrix products in float16, and operations that are not on its float32 list keep "
            "the type they are given. Where the Inf meets another one or a softmax, it becomes NaN. A GradScaler then "
            "skips the step, which keeps the weights clean and the fault quiet: the samples that overflow are simply "
            "never learnt from. bfloat16 has nearly the range of float32 and overflows only at the very end of it."
        ),
        fix=(
            "Scale before the product instead of after it (`(q / d**0.5) @ k.T`), normalise the features, take "
            "`log1p` of counts before the cast, or compute the one operation in float32 (`x.float()` inside "
            "`torch.autocast(device, enabled=False)`). Where the hardware allows, use bfloat16: same memory, no "
            "scaler."
        ),
        bad="with torch.autocast('cuda', dtype=torch.float16):\n    scores = q @ k.transpose(1, 2) / d**0.5\n",
        good="with torch.autocast('cuda', dtype=torch.float16):\n    scores = (q / d**0.5) @ k.transpose(1, 2)\n",
        limits=(
            "A few steps skipped by a GradScaler while it finds its scale are normal: only an overflow in the forward "
            "pass, or more skips in a row than `numbers.scaler_skips`, counts. Overflow inside a fused kernel is seen "
            "at its output. "
            + _REPLAY
            + " `osler lint` sees constants beyond the range (`masked_fill(mask, -1e9)`) put into a tensor that is made "
            "half, comes from a layer in half precision, or from a product under autocast to float16."
        ),
        causes=_SPREADS,
        routes=("run", "lint"),
        links=(
            "https://docs.pytorch.org/docs/stable/amp.html",
            "https://github.com/huggingface/transformers/issues/5651",
        ),
    ),
    Rule(
        name="nonfinite-input",
        part=_PART,
        severity=Severity.ERROR,
        summary="The batch itself holds NaN or Inf before any operation has touched it.",
        why=(
            "No loss survives a NaN in its input, and one cell is enough: the first matrix product spreads it over "
            "the sample, BatchNorm or the mean of the loss over the batch, the optimizer over all weights. "
            "BatchNorm's running averages keep it as well, so that evaluation is NaN too. Where it comes from lies "
            "before the model: an empty cell of a table that was read as NaN, a logarithm or a ratio in the "
            "preparation, a sensor that dropped out, an augmentation that divides by a constant picture's range. "
            "Targets count as input."
        ),
        fix=(
            "Look at the sample and the column that the finding names. Decide once, in the preparation and not in the "
            "loop: drop the row, fill the cell (mean, median, with a flag column that says so), or mend the step that "
            "made it (`log1p` instead of `log`). Then keep it out: `assert torch.isfinite(X).all()` where the data "
            "set is built."
        ),
        bad="X = torch.tensor(table.to_numpy(), dtype=torch.float32)\n",
        good="X = torch.tensor(table.fillna(table.mean()).to_numpy(), dtype=torch.float32)\n",
        limits=(
            "NaN that the model handles by design (`torch.nan_to_num`, a mask) never reaches the gradients and is not "
            "reported. -inf in a mask is not a fault. Where several samples are bad, the first ones are named. "
            + _REPLAY
        ),
        causes=_SPREADS,
        links=("https://docs.pytorch.org/docs/stable/generated/torch.isfinite.html",),
    ),
    Rule(
        name="nonfinite-parameter",
        part=_PART,
        severity=Severity.ERROR,
        summary="Weights or buffers are NaN or Inf before the step begins.",
        why=(
            "From here on every output is NaN, whatever the batch. Either the weights came so (a checkpoint saved "
            "after a blow-up, a cast to float16, an average over no snapshots) or an earlier optimizer step made them "
            "so: optimizers apply a NaN gradient like any other, and a learning rate that a schedule made infinite "
            "turns good gradients into bad weights. The loss shows it one step late, in a place that is innocent."
        ),
        fix=(
            "When they were loaded: go back to an older checkpoint and mend the code that wrote this one; "
            "`all(t.isfinite().all() for t in state.values() if t.is_floating_point())` before saving is cheap. When "
            "a step made them: look at that step's learning rate and gradient norm, which the finding names. Mend the "
            "schedule, warm up, clip gradients with `clip_grad_norm_(..., error_if_nonfinite=True)`, and restart from "
            "before it: training on cannot bring the weights back."
        ),
        bad="lr = base * since_restart ** -0.5          # counts from 0 after a restart\n",
        good="lr = base * (since_restart + 1) ** -0.5\n",
        limits=(
            "Weights that are huge but finite are the business of `update-ratio` and `exploding-gradient`. Which step "
            "made them is known only for optimizers whose step osler saw; weights changed by hand are reported at "
            "their first use. " + _REPLAY
        ),
        causes=(),
        links=(
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html",
            "https://docs.pytorch.org/docs/stable/notes/serialization.html",
        ),
    ),
    Rule(
        name="nonfinite-op",
        part=_PART,
        severity=Severity.ERROR,
        summary="Some other operation turns finite numbers into NaN or Inf, forward or backward.",
        why=(
            "Many functions have a border at which they or their slope are infinite: atanh and acos at 1 (the slope "
            "of acos already, while its value is fine), digamma at 0, tan, hypot at (0, 0). Others run out of "
            "float32, which ends at 3.4e38: a running product over a long sequence, a high power, a matrix multiplied "
            "by itself again and again. A custom `autograd.Function` can have a backward that its forward gives no "
            "hint of. Rounding brings the border nearer than it looks: tanh(10) is exactly 1 in float32, so its atanh "
            "is Inf."
        ),
        fix=(
            "Hold the input off the border (`x.clamp(-1 + 1e-6, 1 - 1e-6)` for float32), in the backward of a custom "
            "function as well as in its forward. Replace products by sums of logarithms and exponentiate at the end, "
            "clamped. Use `torch.atan2` in place of acos for angles. For recurrences, normalise or clip the state."
        ),
        bad="weight = ratio.cumprod(dim=1)\n",
        good="weight = log_ratio.cumsum(dim=1).clamp(max=3).exp()\n",
        limits=(
            "This is what remains when no more specific rule fits. An Inf that is meant (a mask of -inf, a minimum "
            "that starts at Inf) and never reaches a gradient is not reported. " + _REPLAY
        ),
        causes=("nonfinite-parameter",),
        links=(
            "https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html",
            "https://docs.pytorch.org/docs/stable/notes/extending.html",
        ),
    ),
)
