"""Missing values that matter, and values that training never saw."""

from __future__ import annotations

from osler.core.finding import Severity
from osler.core.rule import Rule

_PART = "data"

RULES: tuple[Rule, ...] = (
    Rule(
        name="missing-sensitive",
        part=_PART,
        severity=Severity.WARNING,
        summary="Values are missing in features that the model leans on.",
        why=(
            "A missing value costs as much as the model leans on the feature. A tenth of the rows without a feature that "
            "nothing depends on is harmless; a tenth without the one that decides is a tenth of the predictions made "
            "half blind. Pipelines hide it: an imputer fills in the mean, no line fails, and every such row looks "
            "average in just the respect that matters. Often nobody decided it: a supplier renamed a field, a join lost "
            "its key, a sensor was off for a week, or an export writes -999 or ? where it has nothing, and the model "
            "takes the code for a measurement."
        ),
        fix=(
            "First find out why: a block of rows points to an outage, a rise since training to a change at the source, and "
            "holes that go with the label to a value that is recorded only for some outcomes. Where the holes stay, "
            "reconstruct the features that matter from the others of their row (`SensitivityImputer` chooses the "
            "reconstruction by hiding values that it knows), fill the rest with the median, and give the model a column "
            "that says where the value was missing. Read codes as missing where the file is read, in training and in "
            "service alike."
        ),
        bad="X = SimpleImputer(strategy='mean').fit_transform(X)  # the deciding feature becomes its mean\n",
        good="X = SensitivityImputer(model=FrozenEstimator(model), add_indicator=True).fit_transform(X)\n",
        limits=(
            "Needs a model, or labels for a quick one; without either only codes for missing are named. A share of missing "
            "values that is no larger than in the reference is worth an info at most; without a reference it is a warning "
            "only where filling in the mean is measured to cost the task more than reconstructing. Why a value is missing "
            "cannot be read from the table when the reason is the value itself (missing not at random): the errors given "
            "hold for cells missing at random, and no imputation mends the other kind. Of two features that say the same, "
            "a model may lean on either, and the other then counts for little. Codes are found where they stand apart "
            "from the other values and repeat; a 0, a date such as 1970-01-01 and a 99 among ages are not. Columns of "
            "times, lists and bytes are only counted."
        ),
        routes=("check",),
        links=(
            "https://arxiv.org/abs/1812.02633",
            "https://scikit-learn.org/stable/modules/impute.html",
            "https://arxiv.org/abs/1902.06931",
        ),
    ),
    Rule(
        name="outlier",
        part=_PART,
        severity=Severity.WARNING,
        summary="Values or rows lie outside what training saw.",
        why=(
            "Outside the range of its training a model extrapolates, and most do it badly: trees repeat their last leaf, "
            "linear models run off to any size, networks give a confident answer that means nothing. In training one "
            "value of 1e9 where a person's income should be moves means, scales and gradients. The usual sources are a "
            "changed unit (grams for kilograms, cents for euros, Fahrenheit for Celsius), a misplaced decimal, a sensor "
            "at its stop, and columns that no longer belong to the same row after a join; in the last case every single "
            "value is ordinary and only the row is not."
        ),
        fix=(
            "Look at the rows that the report names. A changed unit is converted where the data is read, and the unit is "
            "checked at the door of the service. A wrong entry is mended at its source or left out. Rare but true values "
            "belong into the training set; until they are there, clip the input or let the service fall back. Columns "
            "that do not fit each other call for a look at the join."
        ),
        bad="model.predict(today)  # weight_kg holds grams since the update of the scales\n",
        good="today['weight_kg'] = today['weight_g'] / 1000\nmodel.predict(today)\n",
        limits=(
            "A value counts as outside where the extrapolated tail of the reference makes it unlikely, so columns with heavy "
            "tails need larger values, and a small reference whose rare wide part was hardly sampled can be taken by "
            "surprise. Rows odd as a whole are judged against reference rows held out for it: with few of them, or many "
            "rows to judge, a handful of odd rows cannot be told from chance, and the report says how many are needed. "
            "Rows with missing values are not judged as a whole. Only columns of numbers are looked at; constant columns and those that number the rows are left out. A "
            "column that moved as a whole without leaving the range is a matter of the drift check. A unit is named only "
            "where one fits clearly better than the others."
        ),
        routes=("check",),
        links=(
            "https://arxiv.org/abs/2104.08279",
            "https://scikit-learn.org/stable/modules/outlier_detection.html",
        ),
    ),
)
