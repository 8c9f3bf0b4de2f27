"""Labels: wrong ones, odd encodings, class lists that disagree."""

from __future__ import annotations

from osler.core.finding import Severity
from osler.core.rule import Rule

_PART = "data"

RULES: tuple[Rule, ...] = (
    Rule(
        name="label-noise",
        part=_PART,
        severity=Severity.WARNING,
        summary="A share of the labels is wrong: predictions that never saw them contradict them, whatever the row looks like.",
        why=(
            "A network with enough parameters learns wrong labels by heart, and what it learns from them it gets wrong on "
            "new data; wrong labels in the test set also rank models wrongly. Training loss does not show it: it falls "
            "either way.\n\n"
            "Neither does confidence. To keep a label because the model is sure is a common mistake: a sure model that "
            "disagrees is the best sign of a wrong label. Nor may the model have seen the label: a model judged on its own "
            "training rows repeats their wrong labels."
        ),
        fix=(
            "Get out-of-fold predictions (`osler.cross_validated_probs`), look at the most suspicious labels, and correct "
            "those. Where there are too many to look at, train on soft targets (`audit.soft_targets()`), which leave doubt "
            "in, or drop the rows that are not to be kept (`audit.keep()`: the predictions are sure and agree). Relabel "
            "once at most: a second round trains on the first one's mistakes. Clean the test set by hand in any case."
        ),
        bad="probs = model.fit(X, y).predict_proba(X)\nkeep = probs.max(axis=1) > 0.9\n",
        good="probs = osler.cross_validated_probs(X, y, model)\naudit = osler.audit_labels(y, probs)\ntargets = audit.soft_targets()\n",
        limits=(
            "From labels and predictions alone, labels that people got wrong on look-alikes and rows that the model gets "
            "wrong cannot be told apart: both fall where the model half expects the given class. osler then raises no alarm "
            "and says so under *not checked*; the most suspicious positions are listed all the same. It is silent on fewer "
            "than 200 labels, on predictions with many ties (decision trees, k nearest neighbours), where most confident "
            "predictions are contradicted, and where predictions repeat the labels they were trained on. A model that "
            "underfits in whole regions of the data can look like noise."
        ),
        routes=("check",),
        links=(
            "https://arxiv.org/abs/1911.00068",
            "https://arxiv.org/abs/1609.03683",
            "https://arxiv.org/abs/2103.14749",
        ),
    ),
    Rule(
        name="label-mapping-drift",
        part=_PART,
        severity=Severity.ERROR,
        summary="An index means one class in training and another in serving.",
        why=(
            "A classifier gives an index; a list gives the name. Where serving reads another list, or sorts it anew, every "
            "prediction of the classes that moved gets a wrong name, with high confidence and without an error. Accuracy "
            "measured in training does not show it. The usual ways there: folder names sorted as text (0, 1, 10, 2), a class "
            "added at the front, labels fitted again on data that lack a class, a set turned into a list."
        ),
        fix=(
            "Write the class list once, where the model is trained, and ship it with the weights (`id2label` in the config, "
            "ONNX metadata, safetensors metadata). Read it from there in serving, never from the data. Let loading fail when "
            "the number of names is not the number of outputs."
        ),
        bad='classes = sorted(os.listdir("data"))  # "10" comes before "2"\n',
        good='classes = sorted(os.listdir("data"), key=int)\njson.dump(classes, open("classes.json", "w"))\n',
        limits=(
            "Lists are compared as they are written; what the model really learnt at an index is not looked at. A synonym at "
            "the same index is reported as one class missing and one more. The share of predictions affected needs traffic "
            "(counts or predictions) in training's indices or names."
        ),
        routes=("check",),
        links=(
            "https://huggingface.co/docs/transformers/main_classes/configuration",
            "https://scikit-learn.org/stable/modules/generated/sklearn.preprocessing.LabelEncoder.html",
        ),
    ),
    Rule(
        name="label-out-of-range",
        part=_PART,
        severity=Severity.ERROR,
        summary="Labels lie outside 0 … C - 1, have the wrong type, or hold a sentinel that the loss does not ignore.",
        why=(
            "Cross-entropy takes the label as an index into the outputs. Outside 0 … C - 1 it fails on the CPU and stops with "
            "a device-side assert on a GPU, often many steps later and with a trace that points elsewhere. Some loops clamp "
            "or wrap the index, and then train one class on the rows of another. -1 for *no label* is ignored by no loss on "
            "its own (torch ignores -100), and stored as uint8 it becomes 255."
        ),
        fix=(
            "Count classes from 0 and keep labels as int64. Subtract 1 from labels that run 1 … C. Tell the loss which label "
            "means none (`ignore_index=255`), or drop those rows. Check `0 <= labels.min()` and `labels.max() < C` where "
            "they are loaded."
        ),
        bad="loss = F.cross_entropy(logits, mask)  # 255 marks pixels without a label\n",
        good="loss = F.cross_entropy(logits, mask.long(), ignore_index=255)\n",
        limits=(
            "Without the number of classes only signs are left: no label 0, a value far above all others, negative ones. A "
            "class that happens not to occur in the file is no fault. Labels that are no whole numbers, or nearly all "
            "different, are taken for a regression's targets and not judged."
        ),
        routes=("check",),
        links=("https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html",),
    ),
)
