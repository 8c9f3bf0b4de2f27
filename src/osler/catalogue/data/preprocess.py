"""Rules on fitted preprocessing and on estimators that are fitted more than once."""

from __future__ import annotations

from osler.core.finding import Severity
from osler.core.rule import Rule

_SEEN = (
    "Rows are recognised by their place: through `train_test_split`, the splitters, views and transformers' outputs. A "
    "selection made by hand (`X[rows]`, `frame.sample`) is recognised by the values of columns that nearly identify a row; "
    "where all columns have few distinct values, or the table was changed on the way, it is not, and osler stays silent. "
    "Fewer than 8 rows are never recognised by value."
)

RULES: tuple[Rule, ...] = (
    Rule(
        name="preprocess-leak",
        part="data",
        severity=Severity.WARNING,
        summary="A transformer was fitted on rows that the model is then evaluated on.",
        why=(
            "An evaluation asks how the model does on rows it has never met. A scaler, imputer, PCA or feature selector that "
            "was fitted on those rows has met them: their means, their gaps, and in the worst case their target are in what the "
            "model was trained on. The score then answers another question than the one that production will ask.\n\n"
            "How much it matters depends on what was learned. Choosing the 20 best of 1,000 features by the target of all "
            "rows makes random labels predictable at 80 to 90 %. Means and spreads of a large, well mixed table move little; "
            "they move much when rows hang together in time or by customer. A vocabulary or a list of categories "
            "hides that production will meet unknown ones. osler calls the first an error, the second a warning, the third "
            "worth knowing."
        ),
        fix=(
            "Split first. Then `fit` on the training rows and only `transform` the others. In cross-validation every fold "
            "needs a transformer of its own, which a Pipeline given to `cross_val_score` or `GridSearchCV` gets. "
            "On evaluation rows call `transform`, never `fit_transform`. Do not carry `partial_fit` or `warm_start` from "
            "one fold into the next."
        ),
        bad=(
            "X = SelectKBest(k=20).fit_transform(X, y)  # sees every row and its target\n"
            "cross_val_score(LogisticRegression(), X, y)\n"
        ),
        good="cross_val_score(make_pipeline(SelectKBest(k=20), LogisticRegression()), X, y)\n",
        limits=(
            "Judged are classifiers and regressors with scikit-learn's interface: an evaluation is a `predict`, `score` or "
            "the like on rows of which they were fitted on at most `preprocess.train_share`, or a fold of "
            "`cross_val_score` and its kin. A model of another library (torch) is not seen to be evaluated: transformed rows "
            "that are split are then `info`. "
            + _SEEN
            + " In the source, a step that learns without labels from rows that the program draws itself, and the cross-fitted "
            "`fit_transform` of scikit-learn's TargetEncoder, are merely possible. A selection of columns made by hand from `get_support()` does not "
            "tell that a selector made it. Silent by design: transformers that learn nothing from values (Normalizer, "
            "FunctionTransformer, HashingVectorizer, a constant imputer), encoders of the target, clustering, a last fit on "
            "all rows after the evaluation, a stream in which each batch is taken in just before it is predicted, tables "
            "standardised group by group. Not seen from the script: joblib's worker processes; there the folds are judged "
            "as they are handed out."
            " `osler lint` reads the same from the source: a step or a statistic of all rows before "
            "`train_test_split`, a splitter, two slices or `cross_val_score`. It is definite where the test part is "
            "judged later, possible where it is not; statistics by hand are probable."
        ),
        routes=("run", "lint"),
        links=(
            "https://scikit-learn.org/stable/common_pitfalls.html#data-leakage",
            "https://doi.org/10.1016/j.patter.2023.100804",
            "https://doi.org/10.1073/pnas.102102699",
        ),
    ),
    Rule(
        name="preprocess-state-changed",
        part="data",
        severity=Severity.WARNING,
        summary="The fitted preprocessing in use is not the one that the model was trained with.",
        why=(
            "A model knows its inputs only as the fitted preprocessing made them: 0.8 means 0.8 spreads above the mean of "
            "the training data. Fit the scaler again on last week's rows, read the columns in another order, or meet a new "
            "category that moves all codes behind it by one, and the same customer arrives as other numbers. Nothing raises an "
            "error, and the model file itself is unchanged, so a comparison of weights shows nothing."
        ),
        fix=(
            "Save preprocessing and model as one object (a Pipeline), and load that in serving. Take "
            "`osler.snapshot(pipeline).save(…)` when training ends, and compare it with the state that serves, in the "
            "deployment's tests: the hash is the same exactly if the state is."
        ),
        bad="scaler = StandardScaler().fit(todays_rows)  # in the service\nmodel.predict(scaler.transform(todays_rows))\n",
        good='pipeline = joblib.load("pipeline.joblib")  # as it was trained\npipeline.predict(todays_rows)\n',
        limits=(
            "Compared are settings, column names and their order, and fitted attributes (names that end in `_`; of an object of "
            "another library, every attribute). A number's change is measured by the column's own spread where the step knows it "
            "(`scale_`, `data_range_`), else by the spread of the attribute's numbers. Arrays of more than 4,096 numbers are "
            "told apart by hash and range only, without the place. What a class keeps in compiled objects without "
            "attributes is listed as not checked. A state that was fitted again on other rows of the same population is reported too, "
            "as `info` where it moved by less than `preprocess.state_moved`."
        ),
        routes=("check",),
        links=(
            "https://scikit-learn.org/stable/model_persistence.html",
            "https://developers.google.com/machine-learning/guides/rules-of-ml#training-serving_skew",
        ),
    ),
    Rule(
        name="model-reused-across-folds",
        part="data",
        severity=Severity.ERROR,
        summary="One model goes on learning through the folds that should judge it.",
        why=(
            "Cross-validation judges k models, each on rows that it never saw. A model that is made once, before the loop, and "
            "then trained on by `partial_fit` or with `warm_start=True` has seen them: what is held out in fold 2 was "
            "training data in fold 1. The first fold's score is honest, the others rise from fold to fold, and their mean is "
            "the mean of a test and of several looks at the training data. `fit` itself starts afresh, which is why the same loop is right "
            "with one model and wrong with another."
        ),
        fix=(
            "Make the model inside the loop, or `sklearn.base.clone` one that was never fitted, in every fold. Scores that "
            "rise with the number of the fold are the sign to look for."
        ),
        bad=(
            "model = SGDClassifier()\nfor train, test in KFold(5).split(X):\n"
            "    model.partial_fit(X[train], y[train], classes=classes)\n    scores.append(model.score(X[test], y[test]))\n"
        ),
        good=(
            "for train, test in KFold(5).split(X):\n    model = SGDClassifier()\n"
            "    model.partial_fit(X[train], y[train], classes=classes)\n    scores.append(model.score(X[test], y[test]))\n"
        ),
        limits=(
            "Seen where a splitter of scikit-learn gives the folds and the model has scikit-learn's interface. "
            "Reported is only a fold all of whose rows the model learned in an earlier fold and none in this one. A "
            "warm start of a convex linear model only shortens the search and is not counted. "
            + _SEEN
            + " `osler lint` also sees torch and Keras models made before the loop, unless the loop puts weights back "
            "or initialises anew (`load_state_dict`, `reset_parameters`, `apply`)."
        ),
        routes=("run", "lint"),
        links=("https://scikit-learn.org/stable/modules/cross_validation.html",),
    ),
)
