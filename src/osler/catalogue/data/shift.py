"""Covariate shift: many features at once."""

from __future__ import annotations

from osler.core.finding import Severity
from osler.core.rule import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        name="covariate-shift",
        part="data",
        severity=Severity.WARNING,
        summary="The joint distribution of the features, or of embeddings, has moved away from the reference.",
        why=(
            "A model is only as good as its training data resemble what it is asked. When the inputs come from somewhere "
            "else (another camera, another country, a new kind of customer, an encoder that was exchanged), it answers in "
            "regions that it has never seen, with the same confidence as before, and no label says so yet. The shift need "
            "not show in any single column: two features can each keep their histogram while their correlation turns "
            "round, and an embedding of 512 dimensions can move by a little in each of them.\n\n"
            "osler measures the distance between the two joint distributions in two ways. KL is how surprising the current "
            "rows are to a model of the reference, in nats; MMD is the distance between their averages in a space in which "
            "a Gaussian kernel is the inner product. Both are compared with what the same rows give when they are dealt at "
            "random to both sides, so a result does not depend on the number of rows or of features."
        ),
        fix=(
            "Look for a fault first: a changed unit, a feed that broke, a preprocessing step that differs, another version "
            "of the encoder. The report names the features and the combinations of features that moved most, and the row at "
            "which it began. If the change is real, draw and label a fresh sample of current rows (the alert tier), weight "
            "or extend the training data towards them, and train again; at the freeze tier take the model out of service "
            "until that is done. `ShiftMonitor` does both by callback and has a gate that a service can ask before each use."
        ),
        bad="probabilities = model.predict_proba(embed_v2(images))  # the model was trained on embed_v1\n",
        good=(
            "monitor = ShiftMonitor(training_embeddings, on_alert=ask_for_labels, on_freeze=retrain)\n"
            "monitor.update(batch)\n"
            "if monitor.gate.open:\n"
            "    probabilities = model.predict_proba(batch)\n"
        ),
        limits=(
            "Fewer than 50 current or 100 reference rows are not judged. Rows must be whole: those with a missing or "
            "non-finite value are left out and counted, and a column that is mostly empty is left out instead. Columns "
            "that count on (identifiers, times) take no part unless they are named. Features are clipped at about six "
            "standard deviations, so single wild values are no shift here. Where the reference's rows hang together in time "
            "(frames, sensors) the nulls are drawn in stretches of it, so that fewer independent rows mean higher "
            "thresholds, and nearest neighbours are left out. The thresholds rise to what the reference's own consecutive "
            "windows do: if the reference itself wanders, only what goes beyond it is reported, and a note says so. Flags "
            "that are hardly ever set and very heavy tails make KL's own noise large, and MMD decides alone. A slow cycle that the reference covers only in part still looks like a shift. Above 256 features the "
            "Gaussian KL is taken along 256 random directions; MMD sees all. A shift in a rare subgroup that moves neither "
            "statistic beyond its floor is missed, and so is a change of the label's meaning with unchanged inputs."
        ),
        routes=("check",),
        links=(
            "https://jmlr.org/papers/v13/gretton12a.html",
            "https://arxiv.org/abs/1810.11953",
            "https://doi.org/10.1016/S0047-259X(03)00096-4",
            "https://doi.org/10.1109/TIT.2009.2016060",
        ),
    ),
)
