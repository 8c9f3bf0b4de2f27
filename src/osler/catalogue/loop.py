"""The order of the training loop: calls that are missing, in the wrong order, or made too often."""

from __future__ import annotations

from osler.core.finding import Severity
from osler.core.rule import Rule

_PART = "loop"
_DOCS = "https://docs.pytorch.org/docs/stable/"
_AMP = _DOCS + "notes/amp_examples.html"
_OPTIM = _DOCS + "optim.html"
_TUNING = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
_LINT = ("lint",)

_SEEN = (
    "`osler lint` follows functions, methods and classes through the files of the project, not into libraries: a loop "
    "whose model or optimizer goes to a library's function is reported only as possible. "
)
_CLOSURE = "Optimizers that are given a closure (LBFGS) and loops run by Lightning or the Trainer are not judged. "

RULES: tuple[Rule, ...] = (
    Rule(
        name="missing-zero-grad",
        part=_PART,
        severity=Severity.ERROR,
        summary="Gradients of earlier steps are still in `.grad`: a loop runs backward and step and never clears them.",
        why=(
            "`backward()` adds to `.grad`, it does not replace what is there; that is what makes accumulation "
            "possible. Without clearing, step n applies the sum of the gradients of steps 1 to n, most of them computed "
            "at weights that are long gone. The sum grows with every step like a momentum that never decays: with SGD "
            "the loss swings and runs off, with Adam the direction is simply old. Nothing fails, and in the first few "
            "steps nothing is to be seen."
        ),
        fix=(
            "Call `optimizer.zero_grad()` in every pass, before `backward()`. To accumulate on purpose, clear after each "
            "step that uses the sum. Clearing once per epoch is not enough."
        ),
        bad="for x, y in loader:\n    loss = criterion(model(x), y)\n    loss.backward()\n    optimizer.step()",
        good=(
            "for x, y in loader:\n    optimizer.zero_grad()\n    loss = criterion(model(x), y)\n    loss.backward()\n"
            "    optimizer.step()"
        ),
        limits=(
            _SEEN + _CLOSURE + "Any call that clears gradients anywhere in the loop counts, also `model.zero_grad()`, "
            "`p.grad = None` and one that stands under a condition; an optimizer made anew in each pass has nothing to clear."
        ),
        causes=("exploding-gradient", "update-ratio"),
        routes=_LINT,
        links=(
            _DOCS + "generated/torch.optim.Optimizer.zero_grad.html",
            "https://discuss.pytorch.org/t/why-do-we-need-to-set-the-gradients-manually-to-zero-in-pytorch/4903",
        ),
    ),
    Rule(
        name="zero-grad-before-step",
        part=_PART,
        severity=Severity.ERROR,
        summary="`zero_grad` stands between `backward` and `step`: the step applies zeros or nothing.",
        why=(
            "The gradients are computed, thrown away, and then applied. With the default `set_to_none=True` the step "
            "finds no gradient and passes every parameter over; with zeros, momentum and weight decay still move the "
            "weights, which looks like very slow training. The loss is finite and flat."
        ),
        fix="Clear the gradients before `backward()` or after `step()`, never in between.",
        bad="loss.backward()\noptimizer.zero_grad()\noptimizer.step()",
        good="optimizer.zero_grad()\nloss.backward()\noptimizer.step()",
        limits=(
            _SEEN
            + _CLOSURE
            + "Reported when the cleared object is the stepped optimizer or the model whose parameters it "
            "was given, so that clearing another optimizer in between (GANs) is not; silent where something writes "
            "`.grad` after the clearing, as gradient surgery does."
        ),
        causes=("zero-gradient", "update-ratio"),
        routes=_LINT,
        links=(_DOCS + "generated/torch.optim.Optimizer.zero_grad.html",),
    ),
    Rule(
        name="clip-before-unscale",
        part=_PART,
        severity=Severity.ERROR,
        summary="Gradients are clipped while they are still multiplied by the loss scale.",
        why=(
            "`GradScaler` multiplies the loss, by 65536 at first, so that small half-precision gradients do not flush to "
            "0; `scaler.step` divides again before it steps. Clipping in between compares the limit with a norm that is "
            "65536 times too large: it always cuts, and what is left after the division is a step 65536 times smaller "
            "than the limit allows. As the scale changes during training, so does the real limit. SGD then hardly moves; "
            "Adam hides it, until the gradients fall below its epsilon."
        ),
        fix="Call `scaler.unscale_(optimizer)` once per step, after `backward()` and before clipping; `scaler.step` then "
        "knows that it need not divide again.",
        bad=(
            "scaler.scale(loss).backward()\ntorch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
            "scaler.step(optimizer)\nscaler.update()"
        ),
        good=(
            "scaler.scale(loss).backward()\nscaler.unscale_(optimizer)\n"
            "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\nscaler.step(optimizer)\nscaler.update()"
        ),
        limits=(
            "Reported where the backward that the clipping follows goes through `scaler.scale(...)` and nothing between "
            "the two unscales, asks for the scale, or is given the scaler. Clipping under a condition that has to do with "
            "the scaler is passed over, as is a scaler made with `enabled=False`. Scalers of apex, DeepSpeed and "
            "Accelerate, which clip by methods of their own, are not judged."
        ),
        causes=("vanishing-gradient", "update-ratio"),
        routes=_LINT,
        links=(_AMP + "#gradient-clipping", "https://github.com/pytorch/examples/issues/1196"),
    ),
    Rule(
        name="clip-after-step",
        part=_PART,
        severity=Severity.ERROR,
        summary="Clipping comes after the step has used the gradients, or before backward has made them.",
        why=(
            "Clipping changes `.grad` in place. After `step()` the gradients have been applied already, at full size, "
            "and the next `zero_grad()` throws the clipped ones away; before `backward()` there is nothing to clip. The "
            "line looks like protection and does nothing: the first bad batch goes through."
        ),
        fix="Clip between `backward()` and `step()` (with a GradScaler: between `unscale_` and `scaler.step`).",
        bad=(
            "optimizer.zero_grad()\nloss.backward()\noptimizer.step()\n"
            "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
        ),
        good=(
            "optimizer.zero_grad()\nloss.backward()\ntorch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
            "optimizer.step()"
        ),
        limits=(
            _SEEN
            + "Clipping of weights (`p.data.clamp_`) is something else and stays silent, as does clipping between the "
            "steps of two optimizers, and a loop that calls something whose name says that it runs backward itself."
        ),
        causes=("exploding-gradient",),
        routes=_LINT,
        links=(_DOCS + "generated/torch.nn.utils.clip_grad_norm_.html",),
    ),
    Rule(
        name="clip-per-micro-batch",
        part=_PART,
        severity=Severity.WARNING,
        summary="Gradients are clipped with every micro-batch of an accumulation instead of once over the sum.",
        why=(
            "While gradients accumulate, `.grad` holds the sum so far. Clipping it after each micro-batch shrinks what "
            "earlier ones have left, again and again, and adds the next at full size: the last micro-batch counts most, "
            "and the result is not the clipped gradient of the large batch that accumulation stands for."
        ),
        fix="Move the clipping into the branch that steps, directly before the step.",
        bad=(
            "(loss / k).backward()\ntorch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\nif (i + 1) % k == 0:\n"
            "    optimizer.step()\n    optimizer.zero_grad()"
        ),
        good=(
            "(loss / k).backward()\nif (i + 1) % k == 0:\n"
            "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()\n    optimizer.zero_grad()"
        ),
        limits=(
            "Accumulation is recognised by a step under a remainder (`(i + 1) % k == 0`) or after an inner loop that runs "
            "backward. Gradients that each micro-batch clears (per-sample clipping for differential privacy) and an "
            "optimizer that trains at every n-th pass with its own backward (a delayed actor) are not accumulation."
        ),
        causes=("update-ratio",),
        routes=_LINT,
        links=(_AMP + "#gradient-accumulation",),
    ),
    Rule(
        name="accumulation-tail-dropped",
        part=_PART,
        severity=Severity.INFO,
        summary="The last, incomplete group of an accumulation never reaches the optimizer.",
        why=(
            "With a step at every k-th batch, an epoch whose number of batches is no multiple of k ends with up to k - 1 "
            "batches whose gradients were computed and are not applied. Either the next epoch clears them, and up to k - 1 "
            "batches of each epoch are lost, or they are left in `.grad` and mix into the first step of the next epoch, "
            "which then sums more batches than the others. With a large k and a short epoch that is a large share."
        ),
        fix="Step at the last batch as well: `if (i + 1) % k == 0 or i + 1 == len(loader)`.",
        bad="if (i + 1) % k == 0:\n    optimizer.step()\n    optimizer.zero_grad()",
        good="if (i + 1) % k == 0 or i + 1 == len(loader):\n    optimizer.step()\n    optimizer.zero_grad()",
        limits=(
            "How long a loader is the source rarely tells: a warning only where both numbers are written down, info where "
            "the gradients are seen to be cleared between epochs, possible otherwise. Counters that run on over epochs, "
            "conditions that ask for a length and a step after the loop are passed over."
        ),
        routes=_LINT,
        links=(_AMP + "#gradient-accumulation",),
    ),
    Rule(
        name="accumulation-not-scaled",
        part=_PART,
        severity=Severity.INFO,
        summary="Mean losses are summed over k micro-batches without dividing by k.",
        why=(
            "A loss with `reduction='mean'` already divides by the batch size. Summing the gradients of k such losses "
            "gives k times the gradient of the mean over the large batch, so the learning rate is k times what it says, "
            "and a clipping limit bites k times earlier. Changing k then changes the training."
        ),
        fix="Divide before backward, `(loss / k).backward()`, or divide the gradients once before the step.",
        bad="for i, (x, y) in enumerate(loader):\n    F.cross_entropy(model(x), y).backward()\n    if (i + 1) % k == 0:\n        ...",
        good=(
            "for i, (x, y) in enumerate(loader):\n    (F.cross_entropy(model(x), y) / k).backward()\n"
            "    if (i + 1) % k == 0:\n        ..."
        ),
        limits=(
            "Only losses of torch with the default reduction are judged. Only possible for Adam and its kin without "
            "clipping, which divide by the gradient's own size. Silent where anything multiplies or divides the loss or "
            "works on `.grad`: it may be the division. A learning rate chosen for the sum is not seen."
        ),
        causes=("update-ratio",),
        routes=_LINT,
        links=(_AMP + "#gradient-accumulation", "https://huggingface.co/blog/gradient_accumulation"),
    ),
    Rule(
        name="unscaled-step",
        part=_PART,
        severity=Severity.ERROR,
        summary="`optimizer.step` stands where `scaler.step` was due, or the scaler is never updated.",
        why=(
            "After `scaler.scale(loss).backward()` the gradients are multiplied by the loss scale, 65536 at first. "
            "`optimizer.step()` applies them as they are: with SGD one step throws the weights away; Adam divides the "
            "factor out and hides it, but weight decay, clipping and the skipping of steps with Inf gradients are lost. "
            "`scaler.update()` adjusts the scale; without it the scaler refuses the next step."
        ),
        fix="`scaler.step(optimizer)`, then `scaler.update()`, once in each pass that steps.",
        bad="scaler.scale(loss).backward()\noptimizer.step()",
        good="scaler.scale(loss).backward()\nscaler.step(optimizer)\nscaler.update()",
        limits=(
            "Reported when the plain step happens whenever the scaled backward does and nothing is asked of the scaler in "
            "between; `if amp: ... else: optimizer.step()` is healthy. A missing update is reported only in a loop that "
            "holds both backward and step and gives the scaler to nobody else."
        ),
        causes=("exploding-gradient", "update-ratio"),
        routes=_LINT,
        links=(_AMP, _DOCS + "amp.html#torch.amp.GradScaler"),
    ),
    Rule(
        name="scheduler-before-optimizer",
        part=_PART,
        severity=Severity.WARNING,
        summary="The scheduler steps before the optimizer's first step, so the first learning rate is never used.",
        why=(
            "A scheduler sets the first learning rate when it is made; each `scheduler.step()` moves on to the next. "
            "Called at the head of the loop, as was right before PyTorch 1.1, it moves on before anything was trained: the "
            "schedule runs one step early, a warm-up skips its first value, and the last value is used for one pass too "
            "few. PyTorch prints a warning once."
        ),
        fix="Call `scheduler.step()` after `optimizer.step()`: at the end of the epoch, or of the pass.",
        bad="for epoch in range(epochs):\n    scheduler.step()\n    train(model, loader, optimizer)",
        good="for epoch in range(epochs):\n    train(model, loader, optimizer)\n    scheduler.step()",
        limits=(
            "Reported when scheduler and optimizer step in one loop and the optimizer has not stepped before it. Steps with "
            "an argument (`scheduler.step(epoch)`, `ReduceLROnPlateau`) and steps under a condition (`if epoch > 0`) stay "
            "silent, as do schedulers that are the project's own."
        ),
        routes=_LINT,
        links=(_OPTIM + "#how-to-adjust-learning-rate",),
    ),
    Rule(
        name="scheduler-per-batch",
        part=_PART,
        severity=Severity.WARNING,
        summary="A schedule counted in epochs is stepped with every batch, or one counted in steps with every micro-batch.",
        why=(
            "A scheduler counts its own calls, nothing else. `StepLR(step_size=30)` that was meant to decay every 30 "
            "epochs decays every 30 batches when its step stands one level too deep: the learning rate is practically 0 "
            "within the first epoch, and the model stops learning with a loss that looks converged. The same happens, k "
            "times slower, when a schedule in optimizer steps is stepped outside the accumulation's branch: it ends after "
            "1/k of the training."
        ),
        fix=(
            "Epoch schedules: step once after the loop over the batches. Schedules in steps (warm-up, OneCycle): step where "
            "the optimizer steps, inside the accumulation's branch."
        ),
        bad=(
            "scheduler = StepLR(optimizer, step_size=30)\nfor epoch in range(100):\n    for x, y in loader:\n        ...\n"
            "        optimizer.step()\n        scheduler.step()"
        ),
        good=(
            "scheduler = StepLR(optimizer, step_size=30)\nfor epoch in range(100):\n    for x, y in loader:\n        ...\n"
            "        optimizer.step()\n    scheduler.step()"
        ),
        limits=(
            "Judged for StepLR, MultiStepLR, ExponentialLR, CosineAnnealingLR and ReduceLROnPlateau whose making is seen, "
            "in a loop over batches inside another loop. Definite when the length is named after epochs or is the number "
            "of the outer loop's passes; probable when the numbers leave less than a thousandth of the learning rate after "
            "a thousand calls, or the length fits into the outer loop. Lengths with a product or a `len` are taken to be "
            "in batches. Schedulers of other kinds are judged only outside an accumulation's branch."
        ),
        causes=("update-ratio",),
        routes=_LINT,
        links=(_OPTIM + "#how-to-adjust-learning-rate", "https://github.com/h2oai/h2o-llmstudio/issues/663"),
    ),
    Rule(
        name="missing-eval-mode",
        part=_PART,
        severity=Severity.WARNING,
        summary="A model with dropout or BatchNorm is evaluated in train mode.",
        why=(
            "In train mode dropout throws away units at random and BatchNorm normalises with the statistics of the batch at "
            "hand. The figures of such an evaluation are worse than the model, differ from call to call, and depend on what "
            "else is in the batch. BatchNorm also goes on updating its running averages, now from the test data, which "
            "changes the model that is saved afterwards."
        ),
        fix="`model.eval()` before the evaluation, `model.train()` when training goes on. `torch.no_grad()` does not do it.",
        bad="with torch.no_grad():\n    for x, y in test_loader:\n        correct += (model(x).argmax(1) == y).sum()",
        good=(
            "model.eval()\nwith torch.no_grad():\n    for x, y in test_loader:\n        correct += (model(x).argmax(1) == y).sum()"
        ),
        limits=(
            "Judged in scripts that show everything: the model is made in the project with a layer that differs between the "
            "modes, it was trained before, and names (`test_loader`, `evaluate`, `x_val`) say that it is evaluated. A "
            "function whose caller may have switched the mode stays silent; so do a `train()` between training and "
            "evaluation (dropout kept on purpose) and models that go to a library's function in between."
        ),
        routes=_LINT,
        links=(
            _DOCS + "notes/autograd.html#evaluation-mode-nn-module-eval",
            _DOCS + "generated/torch.nn.Module.html#torch.nn.Module.eval",
        ),
    ),
    Rule(
        name="missing-train-mode",
        part=_PART,
        severity=Severity.WARNING,
        summary="Training goes on in eval mode after the first evaluation.",
        why=(
            "`model.eval()` for the validation stays in force until somebody calls `model.train()`. From the second epoch "
            "on dropout does nothing, so the model overfits, and BatchNorm normalises with running averages that are no "
            "longer updated while the weights below it go on changing. The first epoch trains as it should, which makes it "
            "hard to see."
        ),
        fix="Call `model.train()` at the head of every epoch, not once before the loop.",
        bad=(
            "model.train()\nfor epoch in range(epochs):\n    train_one_epoch(model, train_loader)\n    model.eval()\n"
            "    validate(model, val_loader)"
        ),
        good=(
            "for epoch in range(epochs):\n    model.train()\n    train_one_epoch(model, train_loader)\n    model.eval()\n"
            "    validate(model, val_loader)"
        ),
        limits=(
            "Reported for a loop that trains a model, puts that same model into eval mode and holds no `train()` for it. "
            "Silent where the model is known to have no layer that differs between the modes, where the branch of the "
            "`eval()` leaves the loop or is taken at one pass of it (`if i == last`), where training stands under the "
            "opposite condition, and where another function may switch back. An `eval()` straight before backward may be "
            "a model frozen on purpose and is only possible."
        ),
        routes=_LINT,
        links=(_DOCS + "generated/torch.nn.Module.html#torch.nn.Module.train",),
    ),
    Rule(
        name="eval-builds-graph",
        part=_PART,
        severity=Severity.INFO,
        summary="An evaluation runs under grad mode and records a graph that nobody uses.",
        why=(
            "`model.eval()` changes layers, not autograd: every operation on a parameter still saves its inputs for a "
            "backward that never comes. Evaluation needs several times the memory and more time than it has to, and runs "
            "out of memory at batch sizes that it could hold. Whatever is collected over the batches keeps all their "
            "graphs alive."
        ),
        fix="Put evaluation under `with torch.no_grad():`, or `torch.inference_mode()`, or decorate its function with it.",
        bad="model.eval()\nfor x, y in val_loader:\n    out = model(x)",
        good="model.eval()\nwith torch.no_grad():\n    for x, y in val_loader:\n        out = model(x)",
        limits=(
            "Judged in scripts that show who calls the loop, for models made in the project whose last switch was `eval()`; "
            "a function whose caller may have turned gradients off stays silent. So do loops that ask for gradients "
            "(saliency, adversarial examples), frozen parameters, unknown `with` blocks, and a `forward` that switches "
            "grad mode itself."
        ),
        routes=_LINT,
        links=(_DOCS + "notes/autograd.html#locally-disabling-gradient-computation", _TUNING),
    ),
    Rule(
        name="graph-retained",
        part=_PART,
        severity=Severity.WARNING,
        summary="A loss is summed or collected over a loop together with its graph.",
        why=(
            "`total += loss` with a tensor that requires grad makes `total` the end of a chain through the graph of every "
            "batch. None of them can be freed while `total` lives: memory grows with each pass, and freeing the chain at the "
            "end can overflow the stack. `losses.append(loss)` holds them just the same. After `backward()` the large "
            "buffers are gone but the nodes stay; without `backward()` everything stays, until the device is full."
        ),
        fix=(
            "`total += loss.detach()` keeps it on the device without waiting; `loss.item()` gives a number, at the price of "
            "one synchronisation. Collect `loss.detach()` likewise."
        ),
        bad="loss.backward()\noptimizer.step()\ntotal += loss",
        good="loss.backward()\noptimizer.step()\ntotal += loss.detach()",
        limits=(
            "Reported for what `backward` is called on in the same loop, or what that is the sum of, when it goes into a "
            "name or list that outlives the pass. Sums and lists that are themselves given to backward, sums that the loop "
            "itself begins anew now and then, meters of other packages and bounded deques are not judged."
        ),
        routes=_LINT,
        links=(
            _DOCS + "notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory",
            "https://github.com/google/brax/issues/152",
        ),
    ),
    Rule(
        name="double-softmax",
        part=_PART,
        severity=Severity.ERROR,
        summary="Probabilities are given to a loss that expects logits, or logits to one that expects probabilities.",
        why=(
            "`cross_entropy` applies log-softmax itself. Given probabilities, it softmaxes numbers between 0 and 1 once "
            "more: of ten classes even a perfect prediction then gets probability 0.23 and a loss of 1.46, and the gradient is "
            "that of an almost uniform distribution, flattened once more by the first softmax. The model learns slowly, "
            "stays unsure, and the accuracy hides it. `BCEWithLogitsLoss` after a sigmoid is the same with two classes. "
            "`NLLLoss` on probabilities has no logarithm at all, and `BCELoss` on logits fails, or gives NaN, as soon as "
            "one leaves [0, 1]."
        ),
        fix=(
            "Return logits from `forward` and give them to `cross_entropy` or `binary_cross_entropy_with_logits`. Apply "
            "softmax only where probabilities are read. `NLLLoss` takes `log_softmax`."
        ),
        bad="probs = F.softmax(self.head(x), dim=1)\nloss = F.cross_entropy(probs, y)",
        good="logits = self.head(x)\nloss = F.cross_entropy(logits, y)",
        limits=(
            "The value is followed through functions, `forward`, `nn.Sequential` and changes of shape, and reported only "
            "when every way leads to a softmax or sigmoid: a `forward` that softmaxes outside training only, an attention "
            "softmax in the middle, soft labels as targets and `log_softmax` before `cross_entropy` (which changes nothing) "
            "are healthy. Models and losses that come out of a library are not seen through."
        ),
        causes=("vanishing-gradient", "update-ratio"),
        routes=_LINT,
        links=(
            _DOCS + "generated/torch.nn.CrossEntropyLoss.html",
            _DOCS + "generated/torch.nn.BCEWithLogitsLoss.html",
        ),
    ),
)
