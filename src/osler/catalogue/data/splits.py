"""Training and evaluation rows that must be apart.

None of these rules brings about another: a split that is wrong in two ways is mended in two places. Evaluation on training
data is the one exception, because all its rows are also copies.
"""

from __future__ import annotations

from osler.core.finding import Severity
from osler.core.rule import Rule

_PART = "data"
_ROUTES = ("check",)
_READ = (*_ROUTES, "lint")
_PITFALLS = "https://scikit-learn.org/stable/common_pitfalls.html#data-leakage"
_CROSS_VALIDATION = "https://scikit-learn.org/stable/modules/cross_validation.html"
_KAPOOR = "https://doi.org/10.1016/j.patter.2023.100804"

RULES: tuple[Rule, ...] = (
    Rule(
        name="time-not-monotonic",
        part=_PART,
        severity=Severity.WARNING,
        summary="Timestamps go back, repeat, or mix time zones or units.",
        why=(
            "Everything that looks at the rows before this one takes the file's order for the order of time: lags, rolling "
            "means, windows, a cut at 80 %. Where time goes back in the middle, a lag of one hour becomes a look into the "
            "future at that row, and a cut by position puts late rows into training.\n\n"
            "The usual causes are two exports put together in the wrong order, a clock that was set back, local times across "
            "the end of daylight saving time (one hour happens twice), times with a zone beside times without one, and "
            "counts since 1970 in seconds beside counts in milliseconds, which lie fifty thousand years apart."
        ),
        fix=(
            "Store times in UTC, in one unit. Sort within each series before you make features. Where several series lie in "
            "one table, say which column tells them apart (`--group`), so that each is judged by itself. The repeated hour of "
            "a local time cannot be put in order afterwards without the offset; take the times from where they were written."
        ),
        bad="frame = pd.concat([march, february])\nframe['lag'] = frame['load'].shift(1)\n",
        good="frame = pd.concat([march, february]).sort_values('time')\nframe['lag'] = frame['load'].shift(1)\n",
        limits=(
            "Looks at the column named as time only. Rows in no order at all and rows from the newest to the oldest are "
            "reported as information: many tables have no order and need none. Small steps back in irregular times, as in a "
            "log with several writers, are information too. Repeats count as a fault only in a series with a regular step. "
            "Where several series share a table and no group is named, steps back cannot be told from the next series."
        ),
        routes=_ROUTES,
        links=(
            "https://pandas.pydata.org/docs/user_guide/timeseries.html#ambiguous-times-when-localizing",
            "https://docs.python.org/3/library/datetime.html#aware-and-naive-objects",
        ),
    ),
    Rule(
        name="split-time-overlap",
        part=_PART,
        severity=Severity.ERROR,
        summary="Training rows at or after the start of evaluation, or a shuffled split of a time series.",
        why=(
            "In use the model knows the past and is asked about what comes next. Trained on rows from after the evaluation, it "
            "has seen what the evaluation asks for: neighbouring hours are nearly equal, prices and loads drift, and the label "
            "of Monday is in the features of Tuesday. A random split of a series does this to every single evaluation row, and "
            "the measured error is that of filling gaps, not of forecasting.\n\n"
            "Where a label is formed over a span (sold within 30 days) or features look back over one, rows close to the border "
            "share data with evaluation even when they come before it; then a gap is needed."
        ),
        fix=(
            "Train on everything before a date and evaluate after it. `osler.TimeSplit` gives rolling and expanding windows with "
            "an embargo and works as `cv=` in scikit-learn. Make the gap at least as long as the label's horizon or the longest "
            "look-back, whichever is longer."
        ),
        bad="train, test = train_test_split(series, test_size=0.2)\n",
        good="cut = series['time'].quantile(0.8)\ntrain, test = series[series.time < cut], series[series.time >= cut]\n",
        limits=(
            "Needs the column of the time (`--time`). With groups, each group is held against itself: other groups may be in "
            "training at that time. Whether rows that are independent of each other and merely carry a date may be shuffled is "
            "not something the data say; ignore the rule there."
            " `osler lint` sees the split itself: rows that were given lags or moving windows (`shift`, `rolling`) and are then "
            "shuffled by `train_test_split` or a splitter; windows within groups are passed over. It is never more than probable."
        ),
        routes=_READ,
        links=(
            _CROSS_VALIDATION + "#cross-validation-of-time-series-data",
            "https://otexts.com/fpp3/tscv.html",
            _KAPOOR,
        ),
    ),
    Rule(
        name="split-duplicate-rows",
        part=_PART,
        severity=Severity.ERROR,
        summary="The same or nearly the same row, text or image on both sides of the split.",
        why=(
            "A row that is in training and in evaluation is answered from memory. With s of the evaluation rows copied, up to s "
            "of the accuracy is memory; models that memorise more look better, so the wrong one is chosen. The test sets of "
            "CIFAR-10 and CIFAR-100 hold 3.3 % and 10 % near copies of training images; without them published models lose 9 "
            "to 14 % of their accuracy (Barz & Denzler 2020).\n\n"
            "Copies arise where data were collected twice, oversampled or augmented before the split, or joined so that rows "
            "multiply. Near copies (rounded, converted, recompressed, one word changed, the next frame of a video) do the same "
            "harm and no `drop_duplicates` finds them."
        ),
        fix=(
            "Remove copies first, then split; oversample and augment only the training side, after the split. Where versions of "
            "one thing belong together (frames, augmentations, revisions), split by that thing: `GroupShuffleSplit`."
        ),
        bad="data = oversample(data)\ntrain, test = train_test_split(data)\n",
        good="train, test = train_test_split(data.drop_duplicates())\ntrain = oversample(train)\n",
        limits=(
            "Rows are compared over the columns that both sides have, without the label, the time, the groups and columns that "
            "number the rows. Rows of a few coarse columns are equal by nature: they are held against the repeats within "
            "training and against rows that agree in all columns but one, and where chance explains them the report says that "
            "copies cannot be told, and names no fault. Near copies are rows closer than rows of these data otherwise are; "
            "columns of few values must be equal in them. With two or three columns of numbers and many rows everything lies "
            "close, and nothing is reported. Texts shorter than a sentence and texts that follow a template are left out, and "
            "so are blank images. Mirrored, rotated and strongly cropped images are not found."
            " `osler lint` sees what copies rows before a split or a cross-validation: oversampling with imbalanced-learn, "
            "`resample` and `sample(replace=True)`."
        ),
        routes=_READ,
        links=("https://arxiv.org/abs/1902.00423", "https://arxiv.org/abs/2107.06499", _KAPOOR),
    ),
    Rule(
        name="split-group-overlap",
        part=_PART,
        severity=Severity.ERROR,
        summary="The same entity (patient, user, device) is on both sides of the split.",
        why=(
            "Rows of one patient resemble each other more than they resemble anybody else's. Where one patient's scans are on "
            "both sides, the model can recognise the patient in place of the disease, and evaluation rewards it. In use the "
            "patients are new, and the accuracy that was measured does not come back."
        ),
        fix=(
            "Split by the entity: `GroupShuffleSplit`, `GroupKFold`, `StratifiedGroupKFold`. Where a row has several (a user and "
            "a shop), decide which of them will be new in use, and split by that one."
        ),
        bad="train, test = train_test_split(scans)\n",
        good="train, test = next(GroupShuffleSplit(1).split(scans, groups=scans['patient']))\n",
        limits=(
            "Needs the column of the entity (`--group`). Where time is named too and evaluation comes after training, groups "
            "recur by design, and it is information. Rows without a value are left out and counted. An entity under two names "
            "is two entities."
        ),
        routes=_ROUTES,
        links=(
            _CROSS_VALIDATION + "#cross-validation-iterators-for-grouped-data",
            _KAPOOR,
        ),
    ),
    Rule(
        name="target-leak",
        part=_PART,
        severity=Severity.WARNING,
        summary="A feature knows the answer: it is the label, follows from it, or was written after it.",
        why=(
            "The date of cancellation predicts who cancels; the number of the ward predicts the diagnosis for which the ward "
            "exists; the account's balance after the fraud predicts the fraud. Such a feature is filled in once the answer is "
            "known. In training and evaluation it makes the model nearly perfect; in use it is empty or holds something else, "
            "because the answer is not known yet.\n\n"
            "Numbers of rows leak as well where a table was sorted by label before they were given."
        ),
        fix=(
            "For every feature ask when it is written, and take the value that was there at the time of the prediction (a "
            "point-in-time join), not the latest one. Drop what is only known together with the label. A perfect score on a hard "
            "problem is a reason to look for one."
        ),
        bad="features = orders.drop(columns='returned')   # refund_date is still among them\n",
        good="features = orders[columns_known_at_checkout]\n",
        limits=(
            "Data cannot say when a value was known unless its time is in a column (`--label-time`, `--feature-time`). Without, "
            "only a feature that is nearly perfect alone while the others together are not is suspected, and that can be honest: "
            "a physical law, a threshold by which the label was defined. It is an error only where the feature is the label, value "
            "by value; otherwise a warning, or merely possible. Leaks that several features share, or that only help a little, "
            "are not seen. Trees are fitted to a sample of the rows; features that are free text, lists or bytes are not tried."
        ),
        routes=_ROUTES,
        links=(_PITFALLS, "https://doi.org/10.1145/2382577.2382579", _KAPOOR),
    ),
    Rule(
        name="eval-on-training-data",
        part=_PART,
        severity=Severity.ERROR,
        summary="Evaluation is done on the training data, or on a part of it.",
        why=(
            "The number that is reported is the training error under another name. It rises with every epoch whether the model "
            "learns anything or only remembers, so early stopping never stops, and the best of several models is the one that "
            "overfits most. It happens by a copied line (`evaluate(train_loader)`), a wrong path, an index list that was drawn "
            "twice, or a held-out set that was appended to training for the final fit."
        ),
        fix=(
            "Check which file, loader or index list the evaluation reads. Split once, store both parts, and assert that their "
            "rows are disjoint."
        ),
        bad="scores = evaluate(model, train_loader)\n",
        good="scores = evaluate(model, eval_loader)\n",
        limits=(
            "Nine evaluation rows in ten must be training rows, and not by nature (see split-duplicate-rows). Two files with the "
            "same rows in another order, under other numbers or with other columns beside them are recognised; the same data "
            "after a transformation are not."
            " `osler lint` sees a loader named for validation over the training set, one set given twice to a trainer, a model "
            "fitted on all rows and judged on a part of them; an estimator that is scored only on the rows of its fit is "
            "information. Loaders with samplers of their own are passed over."
        ),
        causes=("split-duplicate-rows",),
        routes=_READ,
        links=(_PITFALLS, _KAPOOR),
    ),
)
