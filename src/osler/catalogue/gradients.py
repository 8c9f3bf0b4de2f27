"""Gradients, activations, weights: faults that leave every number finite and still keep a model from learning."""

from __future__ import annotations

from osler.core.finding import Severity
from osler.core.rule import Rule

_PART = "gradients"
_DOCS = "https://docs.pytorch.org/docs/stable/"
_BLOW_UP = (
    "dead-relu",
    "saturated-activation",
    "activation-collapse",
    "nonfinite-parameter",
    "nonfinite-op",
    "exp-overflow",
    "half-overflow",
)

RULES: tuple[Rule, ...] = (
    Rule(
        name="vanishing-gradient",
        part=_PART,
        severity=Severity.WARNING,
        summary="A layer's gradient is many orders of magnitude smaller than that of the layers after it.",
        why=(
            "On its way from the loss back to the input a gradient is multiplied by one factor per layer, or per time "
            "step. Where the factors are below 1 (a sigmoid's slope is at most 0.25) their product shrinks "
            "exponentially with depth. The layers near the input then stay at their random initial values: the loss "
            "may still fall a little, because the last layers learn on top of random features, and nothing fails."
        ),
        fix=(
            "Give the gradient a short way back: residual connections, and normalisation between the layers. Use "
            "ReLU or GELU instead of sigmoid or tanh, with the initialisation that fits (Kaiming for ReLU, Xavier for "
            "tanh). In recurrent networks use an LSTM or GRU with a positive bias on the gate that keeps the state, "
            "or attention, so that a late loss reaches early inputs."
        ),
        bad="for layer in self.layers:  # 20 of them\n    x = torch.sigmoid(layer(x))",
        good="for norm, layer in zip(self.norms, self.layers):\n    x = x + torch.relu(layer(norm(x)))",
        limits=(
            "Judged over a window of 64 optimizer steps and relative to the deepest layer whose gradient is healthy, "
            "per element, never against an absolute number: a model near its minimum has small gradients everywhere "
            "and is not reported. Runs shorter than the window are not judged. Frozen parameters, branches that start "
            "at zero (LoRA's B, zero-initialised residual blocks) and biases directly before a BatchNorm or another "
            "layer that subtracts the mean are passed over. Weights shared over time add up the gradients of all "
            "steps, so that a recurrent layer itself can look healthy while the layer that feeds its first step does "
            "not: the latter is reported."
        ),
        links=(
            "https://proceedings.mlr.press/v9/glorot10a.html",
            "https://arxiv.org/abs/1211.5063",
            "https://arxiv.org/abs/1502.01852",
        ),
    ),
    Rule(
        name="exploding-gradient",
        part=_PART,
        severity=Severity.WARNING,
        summary="The gradient norm grows without bound, or far beyond its own earlier level.",
        why=(
            "The factors that shrink a gradient can also enlarge it: where a layer, or a step of a recurrence, "
            "stretches its input, the product grows exponentially with depth or length. A loss without a lower bound "
            "does the same, for the larger the weights are the steeper it becomes. With plain SGD one such step "
            "throws the weights away and NaN follows. Adam hides it for a while, since it divides by the gradient's "
            "size, and the loss then jumps or runs off."
        ),
        fix=(
            "Clip with `torch.nn.utils.clip_grad_norm_` between `backward()` and `step()`. That limits the damage; "
            "the cause is mended by normalisation layers, a smaller initialisation (orthogonal for recurrent "
            "weights), a warm-up of the learning rate, or a loss with a floor (a margin, a bounded score, a gradient "
            "penalty)."
        ),
        bad="loss.backward()\noptimizer.step()",
        good=("loss.backward()\ntorch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)\noptimizer.step()"),
        limits=(
            "Judged over a window of 64 optimizer steps against the model's own earlier level, and only where the "
            "norm is also large in itself. A few high first steps, single outlier batches, and norms that are large "
            "and constant (a loss summed over many elements) are not reported. The norm is the one the optimizer "
            "applies: after clipping and after the loss scale is taken out. When NaN or Inf comes before the growth "
            "can be seen, only the rules about numbers report."
        ),
        causes=_BLOW_UP,
        links=(
            "https://arxiv.org/abs/1211.5063",
            _DOCS + "generated/torch.nn.utils.clip_grad_norm_.html",
        ),
    ),
    Rule(
        name="zero-gradient",
        part=_PART,
        severity=Severity.WARNING,
        summary="A parameter that should learn gets a gradient of exactly 0 in every step.",
        why=(
            "The parameter takes part in the loss and autograd computes a gradient for it, but every entry is 0: "
            "somewhere between it and the loss stands an operation whose derivative is 0 everywhere (`round`, "
            "`sign`, `floor`, a clamp at its limit, a dead ReLU) or a factor that is always 0 (a mask the wrong way "
            "round, an integer division). The parameter never moves, and no error says so."
        ),
        fix=(
            "Find the operation on the way to the loss. For rounding and sign use a straight-through estimator: "
            "`x + (torch.round(x) - x).detach()`. For a mask or weight check its values: `mask.float().mean()`. For "
            "`clamp` at its limit rescale what goes in. If the parameter is not meant to learn, set "
            "`requires_grad_(False)`."
        ),
        bad="code = torch.round(self.encoder(x))",
        good="z = self.encoder(x)\ncode = z + (torch.round(z) - z).detach()",
        limits=(
            "Reported only when the gradient was exactly 0 in all of 64 steps in a row; rows of an embedding that "
            "were not looked up, experts that were not routed to and other partly zero gradients are healthy. "
            "Branches held at zero by their own initialisation (LoRA's A while B is 0, zero-initialised residual "
            "blocks) start with zero gradients and are passed over once they move. Frozen parameters are not judged. "
            "A parameter without any gradient (`.grad is None`) is `unused-parameter` or `gradient-detached`."
        ),
        links=("https://arxiv.org/abs/1308.3432", _DOCS + "notes/autograd.html"),
    ),
    Rule(
        name="dead-relu",
        part=_PART,
        severity=Severity.WARNING,
        summary="Most units of a ReLU-like layer output 0 for every sample.",
        why=(
            "A ReLU passes no gradient where its input is negative. A unit that is negative on every sample gets no "
            "gradient at all, so nothing ever brings it back: it is dead. One step that is too large, a bias far "
            "below zero, or inputs that are not centred can kill most of a layer at once. The model goes on training "
            "with the few units left and ends up worse than its size promises, often at a constant output."
        ),
        fix=(
            "Lower the learning rate or warm it up, start biases at 0, use Kaiming initialisation, and centre and "
            "scale the inputs. A normalisation layer before the ReLU keeps units near zero; LeakyReLU, GELU or SiLU "
            "have a slope on the negative side, so that units can come back."
        ),
        bad="nn.init.constant_(hidden.bias, -4.6)  # meant for the output layer\nh = torch.relu(hidden(x))",
        good="nn.init.zeros_(hidden.bias)\nh = torch.relu(hidden(x))",
        limits=(
            "Looks at sampled steps only (dense at the start, then every 50) and needs the units to be 0 on every "
            "sample of all of them; sparse but living units are healthy. Inside regions compiled by `torch.compile` "
            "activations cannot be seen, and the report says so. Networks that are deliberately in eval mode or "
            "frozen (feature extractors, teachers under `no_grad`, target networks) are not judged."
        ),
        causes=("zero-gradient", "vanishing-gradient", "activation-collapse"),
        links=("https://arxiv.org/abs/1903.06733", "https://arxiv.org/abs/1502.01852"),
    ),
    Rule(
        name="saturated-activation",
        part=_PART,
        severity=Severity.WARNING,
        summary="A hidden layer's sigmoid, tanh or softmax outputs sit at their limits.",
        why=(
            "Far from 0, sigmoid and tanh are flat: their slope there is almost 0, and the gradient that passes "
            "through is multiplied by it. A layer whose outputs are nearly all at the limits blocks learning for "
            "everything before it and passes on little more than signs. The usual reasons are inputs that were "
            "never scaled (pixels 0 to 255, prices, timestamps), weights initialised too large, and attention scores "
            "that were not divided by the square root of their dimension."
        ),
        fix=(
            "Standardise the inputs with the training set's mean and standard deviation; use Xavier initialisation; "
            "put a normalisation layer before the activation; divide attention scores by sqrt(d). If weights grew "
            "during training, lower the learning rate."
        ),
        bad="h = torch.tanh(self.hidden(pixels))  # 0 … 255",
        good="h = torch.tanh(self.hidden((pixels - mean) / std))",
        limits=(
            "Judged on hidden layers only: an output layer that is sure of its answer, and gates that are meant to "
            "open or close for good, are healthy as long as the layers before them learn. Looks at sampled steps "
            "within a window of 64. Activations inside compiled regions and inside fused kernels (nn.LSTM, fused "
            "attention) cannot be seen. Networks in eval mode on purpose and frozen ones are not judged."
        ),
        causes=("vanishing-gradient", "zero-gradient"),
        links=("https://proceedings.mlr.press/v9/glorot10a.html",),
    ),
    Rule(
        name="activation-collapse",
        part=_PART,
        severity=Severity.WARNING,
        summary="A hidden layer's output becomes the same for every sample as training goes on.",
        why=(
            "The layer told samples apart at first and does so less and less: the spread of its outputs over the "
            "batch, or their rank, falls towards 0. What is not there any more no later layer can bring back. It is "
            "the typical failure of self-supervised training, where a constant output satisfies the loss perfectly, "
            "which is why the loss looks excellent."
        ),
        fix=(
            "Take away the trivial solution: a stop-gradient on one branch with a predictor on the other (SimSiam, "
            "BYOL), negative pairs (contrastive losses), or a variance term in the loss (VICReg). In supervised "
            "training look for dead units, too strong weight decay, or a too large learning rate."
        ),
        bad="loss = -cosine(p1, z2) - cosine(p2, z1)",
        good="loss = -cosine(p1, z2.detach()) - cosine(p2, z1.detach())",
        limits=(
            "Needs a fall from the layer's own earlier level: a layer that never told samples apart (the far end of "
            "a deep sigmoid network) shows up as `vanishing-gradient` instead. Partial collapse onto a few "
            "directions while the rest keeps its spread can pass unseen. Looks at sampled steps; compiled regions "
            "show no activations. Batches of one sample cannot be judged. Networks in eval mode on purpose, frozen "
            "ones, targets and teachers are passed over."
        ),
        causes=("zero-gradient", "vanishing-gradient"),
        links=("https://arxiv.org/abs/2011.10566", "https://arxiv.org/abs/2105.04906"),
    ),
    Rule(
        name="unused-parameter",
        part=_PART,
        severity=Severity.WARNING,
        summary="A parameter requires a gradient and takes no part in the loss.",
        why=(
            "A layer was built in `__init__` and is never called, or its output never reaches the loss. It keeps its "
            "random initial values, is saved with every checkpoint, counts in the model's size, and the model that "
            "trains is not the one that was designed. DistributedDataParallel refuses such a model by default."
        ),
        fix=(
            "Call the layer in `forward` and add its output to the loss, or delete it. If it is kept on purpose (a "
            "head for later), freeze it with `requires_grad_(False)` and leave it out of the optimizer."
        ),
        bad="def forward(self, x):\n    return self.head(self.encoder(x))  # self.norm is never called",
        good="def forward(self, x):\n    return self.head(self.norm(self.encoder(x)))",
        limits=(
            "Settled after 16 optimizer steps, so that updates in turn (GANs, multi-task training, layer dropping) "
            "come round; a parameter used more rarely than that may be reported. Frozen parameters, modules that a "
            "script holds only for evaluation, teachers and targets (EMA copies, target networks) are passed over. "
            "Where the graph was cut on the way, the finding stands below `gradient-detached`."
        ),
        links=(_DOCS + "notes/ddp.html",),
    ),
    Rule(
        name="parameter-not-in-optimizer",
        part=_PART,
        severity=Severity.WARNING,
        summary="A parameter gets gradients and no optimizer owns it.",
        why=(
            "`backward()` fills its `.grad`, but no `step()` ever applies it: the parameter stays at its initial "
            "value while everything around it adapts. It happens where parameter groups are listed by hand and one "
            "part is forgotten, where a layer is added after the optimizer was built, and where a loss has "
            "parameters of its own (a learnable temperature, class centres). Its gradient is not cleared by "
            "`optimizer.zero_grad()` either and piles up."
        ),
        fix=(
            "Hand it over: build the optimizer after the model is complete, from `model.parameters()`, or add the "
            "missing part with `optimizer.add_param_group({'params': ...})`. Include the loss module's parameters. "
            "If it is meant to stay fixed, set `requires_grad_(False)`: that also saves its backward pass."
        ),
        bad="optimizer = Adam([{'params': model.encoder.parameters()}])  # and the decoder?",
        good="optimizer = Adam(model.parameters())",
        limits=(
            "Settled after 16 optimizer steps over all optimizers of the process together, so that a GAN's two "
            "optimizers or alternating ones are healthy. Gradients wanted for their own sake (saliency, gradient "
            "penalty, adversarial inputs) belong to inputs, not to parameters, and are not judged. Updates by hand "
            "(`p -= lr * p.grad`, `p.data.add_`, torch.func) change the weights and are recognised by that. Frozen "
            "parameters are passed over."
            " `osler lint` judges where every optimizer and all layers are made in sight, and is silent once a group "
            "is added later, something is frozen, or a layer is given its values (`load_state_dict`)."
        ),
        routes=("run", "lint"),
        links=(_DOCS + "optim.html",),
    ),
    Rule(
        name="stale-optimizer-parameters",
        part=_PART,
        severity=Severity.ERROR,
        summary="The optimizer owns tensors that the model no longer uses.",
        why=(
            "An optimizer keeps references to the Parameter objects it was given, not to the model. Replace a head, "
            "build the model anew, or train a deep copy, and `step()` goes on updating the old tensors while the "
            "loss comes from the new ones. The run looks normal; the new parameters, or all of them, never move."
        ),
        fix=(
            "Build the optimizer last: after every replaced layer, re-initialisation, copy or wrap. If it must stay, "
            "add the new parameters with `add_param_group` and remove the old ones. Moving a model with `.to()` keeps "
            "its Parameter objects on current PyTorch and needs no new optimizer."
        ),
        bad="optimizer = SGD(model.parameters(), lr=0.1)\nmodel.fc = nn.Linear(64, 10)",
        good="model.fc = nn.Linear(64, 10)\noptimizer = SGD(model.parameters(), lr=0.1)",
        limits=(
            "Settled after 16 optimizer steps. Told from `unused-parameter` by the owner: the tensors belong to no "
            "module that runs. Optimizers over bare tensors (style transfer, learned inputs, parameters without a "
            "module) and optimizers that wait for their turn are not reported; nor is `.to()`, which is no fault."
            " `osler lint` sees a replaced attribute, a model made anew and a deep copy after the optimizer, in one "
            "function, script or class."
        ),
        causes=("parameter-not-in-optimizer", "unused-parameter"),
        routes=("run", "lint"),
        links=(_DOCS + "optim.html",),
    ),
    Rule(
        name="layers-not-registered",
        part=_PART,
        severity=Severity.ERROR,
        summary="Layers kept in a plain list or dict are invisible to parameters(), to() and state_dict().",
        why=(
            "`nn.Module` registers what is assigned to an attribute as a Module or Parameter. What sits inside a "
            "plain list, tuple or dict is called in `forward` like any other layer, but `model.parameters()` does "
            "not yield it: the optimizer never updates it, `model.to(device)` leaves it behind, and "
            "`state_dict()` saves a checkpoint without it, so that a reloaded model has new random layers."
        ),
        fix=(
            "Use `nn.ModuleList`, `nn.ModuleDict` or `nn.Sequential` for layers, `nn.ParameterList` or "
            "`nn.ParameterDict` for parameters."
        ),
        bad="self.layers = [nn.Linear(64, 64) for _ in range(4)]",
        good="self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))",
        limits=(
            "Sees layers that run in a forward pass within the first 16 optimizer steps and are reachable through "
            "the model's own attributes, lists, tuples and dicts. Layers hidden on purpose whose parameters an "
            "optimizer owns all the same, frozen ones (a perceptual loss, a teacher kept out of the state dict) and "
            "ones that run only under `no_grad` are not reported."
            " `osler lint` reads `__init__`: lists, tuples and dicts of layers made there and used in another method. "
            "A list of one is the usual way to hide a module, and is merely possible."
        ),
        causes=("parameter-not-in-optimizer",),
        routes=("run", "lint"),
        links=(_DOCS + "generated/torch.nn.ModuleList.html", _DOCS + "generated/torch.nn.ParameterList.html"),
    ),
    Rule(
        name="gradient-detached",
        part=_PART,
        severity=Severity.ERROR,
        summary="The graph is cut between parameters that the optimizer owns and the loss.",
        why=(
            "`detach()`, `.data`, `torch.no_grad()`, a round trip through numpy or a Python number, and `argmax` "
            "return values that autograd knows nothing about. Everything before the cut gets no gradient: its "
            "parameters stay at random values while the part behind the cut learns on top of them. If all of the "
            "model lies before the cut, `backward()` raises `element 0 of tensors does not require grad`."
        ),
        fix=(
            "Remove the cut, or do the computation with differentiable torch operations; keep `.detach()`, "
            "`.item()` and `.numpy()` for logging. For a choice like `argmax` train on the logits, or use "
            "`torch.nn.functional.gumbel_softmax`. If the part before the cut is meant to stay fixed, freeze it and "
            "leave it out of the optimizer."
        ),
        bad="with torch.no_grad():\n    features = self.encoder(x)\nreturn self.head(features)",
        good="return self.head(self.encoder(x))",
        limits=(
            "Reported only where every way from the parameter to the loss is cut for 16 optimizer steps and an "
            "optimizer owns the parameter. Cuts on purpose (targets, stop-gradients beside a live branch, teachers "
            "under `no_grad`, straight-through estimators, truncated backpropagation through time, frozen feature "
            "networks) leave another way open or own nothing, and are healthy. A cut in compiled code is found, its "
            "line may not be."
            " `osler lint` sees cuts between layers made in sight and `backward`, and is definite only where nothing "
            "that the optimizer owns is left; where weights are set by hand as well (a teacher that follows its "
            "pupil) it is silent about parts of a model."
        ),
        causes=("zero-gradient", "unused-parameter"),
        routes=("run", "lint"),
        links=(_DOCS + "generated/torch.Tensor.detach.html", _DOCS + "notes/autograd.html"),
    ),
    Rule(
        name="update-ratio",
        part=_PART,
        severity=Severity.WARNING,
        summary="Each step changes the weights by far too much, or by less than float rounding.",
        why=(
            "The size of an update relative to the weight it changes, |update| / |weight|, says whether a learning "
            "rate fits, whatever the loss or the optimizer. About 1e-3 is usual. Near 1 every step overwrites what "
            "the steps before have learnt: the loss jumps, ReLUs die, activations saturate. Near 1e-8 rounding "
            "swallows the step and the weights stay where they are."
        ),
        fix=(
            "Too large: divide the learning rate by 10 until the ratio is near 1e-3 (for Adam start at 1e-3 or "
            "3e-4, not at SGD's 0.1), and warm it up. Too small: raise the learning rate, look for a scheduler that "
            "decays every batch instead of every epoch, and keep master weights in float32."
        ),
        bad="optimizer = torch.optim.Adam(model.parameters(), lr=1.0)",
        good="optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)",
        limits=(
            "The median over the looks at a window of 64 steps, per layer, counts: warm-ups, cool-downs and single "
            "large steps are healthy, and so are parameters that start at 0 (biases, LoRA's B, zero-initialised "
            "residuals), whose ratio is meaningless at first. A parameter whose gradient is 0 is judged by "
            "`zero-gradient`. Optimizers that do not step through `torch.optim.Optimizer` are not seen."
        ),
        causes=("exploding-gradient", *_BLOW_UP),
        links=("https://cs231n.github.io/neural-networks-3/",),
    ),
)
