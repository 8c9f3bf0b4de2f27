"""Drift of single columns."""

from __future__ import annotations

from osler.core.finding import Severity
from osler.core.rule import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        name="feature-drift",
        part="data",
        severity=Severity.WARNING,
        summary="A column's distribution has moved away from the reference.",
        why=(
            "A model knows the data it was trained on. When a column comes in other units, from another source, with another "
            "default, or from another population, the model goes on giving answers, only worse ones, and nothing raises an "
            "error: the labels that would show it arrive weeks later or never. Most drifts are not the world changing but a "
            "step before the model: a join that finds fewer rows, a sensor set to another range, a field renamed, "
            "cents where there were euros.\n\n"
            "A small p-value alone says little: with a million rows any two days differ. A large distance alone says little "
            "too: 200 rows lie far from anything by chance. osler reports a column when it has moved by an effect that "
            "matters and the move is significant at the sizes at hand, after a correction over all columns and tests."
        ),
        fix=(
            "Look first whether the column is still made the same way: unit, scaling, default values, source, filter. The "
            "report says what moved (location, spread, tails, categories, missing share) and, with `--time` and `--window`, "
            "since when; compare that moment with the deployments around it. If the step is sound, the population has "
            "moved: score the model on recent labelled rows, and retrain on data that include them where the score has "
            "fallen. A move that is meant to be (a price rise, a new market) is answered with a new reference."
        ),
        bad="model.predict(today)  # `income` now arrives in thousands\n",
        good=(
            'report = osler.check_drift("reference.profile", today)\n'
            'if report.findings:\n    raise SystemExit("today does not look like the training data")\n'
            "model.predict(today)\n"
        ),
        limits=(
            "Numbers are compared by Kolmogorov–Smirnov and Wasserstein distance, categories by Jensen–Shannon distance, "
            "missing and infinite values by their share. Each column is judged by itself: a relation between columns can "
            "change while every column stays as it was. The false-alarm level of 5 % over the whole table holds for rows that "
            "are drawn independently; rows that hang together (many of one customer, a season) differ more, and only the "
            "limits on the effect stand in the way of a report. Integers are numbers unless named as categories; times "
            "move on by themselves and are judged only when named as numeric; texts of more than 1,000 distinct values, or "
            "mostly distinct ones, are taken for text or ids. What was not judged is listed with the reason. Values "
            "that lie apart by less than a thousandth of the spread count as the same. Integers beyond 2^53 are compared as the nearest "
            "float. A change of the tails alone needs more rows to be significant than a shift does, and beyond some 400 "
            "tests at once it may not be found."
        ),
        routes=("check",),
        links=(
            "https://doi.org/10.1016/j.spl.2011.12.001",
            "https://en.wikipedia.org/wiki/Wasserstein_metric",
            "https://en.wikipedia.org/wiki/Holm%E2%80%93Bonferroni_method",
        ),
    ),
)
