"""What a program's source shows: how it loads, seeds, times and shares out its work."""

from __future__ import annotations

from osler.core.finding import Severity
from osler.core.rule import Rule

_PART = "source"
_DOCS = "https://docs.pytorch.org/docs/stable/"
_RANDOMNESS = _DOCS + "notes/randomness.html"

RULES: tuple[Rule, ...] = (
    Rule(
        name="state-partial-load",
        part=_PART,
        severity=Severity.WARNING,
        summary="A state dict is loaded with strict=False and nobody looks at what did not fit.",
        why=(
            "`load_state_dict(state, strict=False)` copies the keys that both sides have and passes over all others. It "
            "returns the names of both kinds of leftovers; where that result is dropped, nothing says that there were any. One "
            "prefix (`module.`, `_orig_mod.`) is enough for no key at all to fit: the model then runs with its random initial "
            "values, and only its accuracy tells."
        ),
        fix=(
            "Leave `strict=False` out. Where a part is meant to stay new (another head), keep the result and assert that the "
            "missing keys are those, and that none is unexpected."
        ),
        bad="model.load_state_dict(state, strict=False)\n",
        good=(
            "missing, unexpected = model.load_state_dict(state, strict=False)\n"
            "assert not unexpected and all(name.startswith('head.') for name in missing)\n"
        ),
        limits=(
            "Reads the call as it is written: `strict=False` as a word, and a result that no one takes. Silent where the "
            "function compares keys in another way (names with `missing` or `unexpected` in them) and in a `load_state_dict` of "
            "one's own. Merely possible, and shown with `--all` only, where the name says that the state is a part by design "
            "(`lora`, `adapter`, `backbone`, `pretrained`), where it was not seen to be read from a file as it is, and in files "
            "that train nothing. Whether keys are really left over, only a run can tell."
        ),
        routes=("lint",),
        links=(_DOCS + "generated/torch.nn.Module.html#torch.nn.Module.load_state_dict",),
    ),
    Rule(
        name="unsafe-load",
        part=_PART,
        severity=Severity.WARNING,
        summary="A file is unpickled that others may have written, or a load is bound to a device that may be absent.",
        why=(
            "A pickle is a program: to load one is to run it, with all rights of the user. `torch.load`, `joblib.load`, "
            "`numpy.load(allow_pickle=True)` and `pickle.load` all do that. For a file that came over the network it means that "
            "whoever can change the file, or the way it comes, runs code on this machine. From torch 2.6 on `torch.load` refuses "
            "anything but tensors and plain containers, unless `weights_only=False` is given; before, it took everything.\n\n"
            "A tensor that was saved on a GPU is also loaded to that GPU. On a machine without one `torch.load` then fails, "
            "and with several processes all of them load to the first device, unless `map_location` says where to."
        ),
        fix=(
            "Give `weights_only=True`, and keep weights in safetensors, which holds nothing but numbers. For what others "
            "publish, prefer the safetensors file and pin its hash. Give `map_location='cpu'`; `load_state_dict` copies to the "
            "device of the model."
        ),
        bad="state = torch.load(hf_hub_download(repo, 'model.bin'), weights_only=False)\n",
        good="state = safetensors.torch.load_file(hf_hub_download(repo, 'model.safetensors'))\n",
        limits=(
            "That a file was downloaded is told by the calls that lead to its name in the same function (`hf_hub_download`, "
            "`urlretrieve`, `requests.get`, …). `weights_only=False` on a file of unknown origin is information. For "
            "`torch.load` without `weights_only` the version of torch decides (`torch` in the configuration, else the one that is "
            "installed): from 2.6 on it is safe. A missing `map_location` is information, and told only in "
            "files that ask whether there is a GPU; a file that the same source saves is passed over."
        ),
        routes=("lint",),
        links=(
            _DOCS + "generated/torch.load.html",
            _DOCS + "notes/serialization.html#weights-only",
            "https://docs.python.org/3/library/pickle.html",
            "https://github.com/huggingface/safetensors",
        ),
    ),
    Rule(
        name="nondeterministic-run",
        part=_PART,
        severity=Severity.WARNING,
        summary="A run that is meant to be repeatable is not, or repeats random numbers that it should not.",
        why=(
            "Two runs agree only if every source of chance is fixed. `torch.use_deterministic_algorithms(True)` and "
            "`cudnn.deterministic = True` choose repeatable kernels; without a seed, weights and shuffling still differ each "
            "time. `cudnn.benchmark = True` beside them lets cuDNN pick the fastest kernel by measuring, and measurements "
            "differ.\n\n"
            "The reverse fault: a seed that is set again in every pass of the training loop gives every epoch the same dropout "
            "masks, the same noise and the same order of the samples. Nothing is random any more, and nobody notices."
        ),
        fix=(
            "Set the seeds once, at the start: `torch.manual_seed`, `numpy.random.seed`, `random.seed`. Set "
            "`cudnn.benchmark = False` where determinism is wanted. Inside a loop use a `torch.Generator` of its own, or a "
            "seed that counts up with the epoch."
        ),
        bad="torch.backends.cudnn.deterministic = True\ntorch.backends.cudnn.benchmark = True\n",
        good="torch.backends.cudnn.deterministic = True\ntorch.backends.cudnn.benchmark = False\n",
        limits=(
            "Unset seeds are reported only where determinism is asked for and a training stands in the same way through the "
            "program, and nothing in the file has `seed` in its name. A seed in a loop is passed over where it changes with the "
            "loop, where each pass makes its own model (trials, folds), and inside `fork_rng`. Operations that have no "
            "deterministic form are not looked for: torch itself raises an error for them."
        ),
        routes=("lint",),
        links=(_RANDOMNESS, _DOCS + "generated/torch.use_deterministic_algorithms.html"),
    ),
    Rule(
        name="worker-seed-repeated",
        part=_PART,
        severity=Severity.WARNING,
        summary="DataLoader workers draw the same random numbers.",
        why=(
            "A worker is a copy of the main process. torch gives each one a seed of its own for its global generator and for "
            "that of `random`, from 1.9 on also for numpy's. A generator that the dataset made itself "
            "(`numpy.random.default_rng(0)` in `__init__`) is copied as it is: with 4 workers the same augmentation is drawn 4 "
            "times, for 4 different samples, and each epoch begins with the same ones again. A `worker_init_fn` that sets one "
            "constant seed brings the same about. The augmentation is then worth a quarter of what it costs, and no number "
            "looks odd."
        ),
        fix=(
            "Draw from the global generators (`torch.rand`, `numpy.random`, `random`), which torch seeds per worker. Or make the "
            "generator in the worker: in `worker_init_fn`, or at the first `__getitem__`, from `torch.initial_seed()`, which "
            "differs per worker and per epoch."
        ),
        bad=(
            "class Rows(Dataset):\n    def __init__(self):\n        self.rng = np.random.default_rng(0)\n\n"
            "    def __getitem__(self, i):\n        return self.x[i] + self.rng.normal()\n"
        ),
        good=("class Rows(Dataset):\n    def __getitem__(self, i):\n        return self.x[i] + np.random.normal()\n"),
        limits=(
            "Reads dataset classes whose loader stands in the same file with a number of workers above 0 and without a "
            "`worker_init_fn`. numpy's global generator in `__getitem__` is reported for torch before 1.9 only, where the version "
            "is known. A generator that `get_worker_info` or `initial_seed` is asked for anywhere in the class is passed over."
        ),
        routes=("lint",),
        links=(
            _DOCS + "data.html#randomness-in-multi-process-data-loading",
            "https://github.com/pytorch/pytorch/pull/56488",
            _RANDOMNESS + "#dataloader",
        ),
    ),
    Rule(
        name="unsynchronized-timing",
        part=_PART,
        severity=Severity.WARNING,
        summary="Work on a GPU is timed by the host's clock without waiting for it.",
        why=(
            "CUDA works behind the program's back: a call like `model(x)` puts kernels into a queue and returns at once. The "
            "clock, read before and after, then measures how long it takes to fill the queue, not how long the model takes; "
            "whatever waits for the GPU next (`.item()`, `.cpu()`) pays for it all. Ten times too fast is not "
            "unusual, and of two models the one with fewer calls seems faster."
        ),
        fix=(
            "Call `torch.cuda.synchronize()` before each reading of the clock, or use `torch.cuda.Event(enable_timing=True)`. "
            "For benchmarks take `torch.utils.benchmark.Timer`, which warms up and waits by itself."
        ),
        bad="start = time.perf_counter()\nout = model(x)\nseconds = time.perf_counter() - start\n",
        good=(
            "torch.cuda.synchronize()\nstart = time.perf_counter()\nout = model(x)\ntorch.cuda.synchronize()\n"
            "seconds = time.perf_counter() - start\n"
        ),
        limits=(
            "Reported where the model or its input was seen to be moved to a CUDA device, and nothing between the two readings "
            "waits for it (`synchronize`, `item`, `cpu`, `numpy`, `tolist`, printing a tensor). A passage that goes through a "
            "loader is passed over: over an epoch the queue's length matters little. Functions that could not be looked into may "
            "wait, and silence the rule."
        ),
        routes=("lint",),
        links=(
            _DOCS + "notes/cuda.html#asynchronous-execution",
            _DOCS + "benchmark_utils.html",
        ),
    ),
    Rule(
        name="rank-data-repeated",
        part=_PART,
        severity=Severity.WARNING,
        summary="A DistributedSampler is used over several epochs without set_epoch: each one has the same order.",
        why=(
            "`DistributedSampler` shuffles by a seed and the number of the epoch, so that all ranks agree on the order and take "
            "different rows of it. It cannot know the epoch by itself. Without `set_epoch` it stays at 0, and every epoch deals "
            "out the same rows to the same ranks in the same order: the same batches again and again. Training goes on, and "
            "ends worse than with one GPU."
        ),
        fix="Call `sampler.set_epoch(epoch)` at the head of each epoch, before the loader is gone through.",
        bad="for epoch in range(epochs):\n    for batch in loader:\n        train(batch)\n",
        good="for epoch in range(epochs):\n    sampler.set_epoch(epoch)\n    for batch in loader:\n        train(batch)\n",
        limits=(
            "Needs the sampler, the loader and the loop over epochs in one way through the program. Silent for samplers with "
            "`shuffle=False`, for frameworks that call `set_epoch` themselves (Accelerate, Lightning, the Trainer), and where any "
            "`set_epoch` stands in the file."
        ),
        routes=("lint",),
        links=(_DOCS + "data.html#torch.utils.data.distributed.DistributedSampler",),
    ),
)
