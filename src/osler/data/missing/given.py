"""The user's model on encoded rows: which columns it takes, in which form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from osler.data.missing.columns import Floats, Plan
from osler.data.missing.fill import decode
from osler.data.missing.models import is_torch, predictor
from osler.data.need import DataError
from osler.data.tables import closest


def inputs_of(model: Any, available: Sequence[str], asked: Sequence[str] | None) -> list[str]:
    """The columns that a model takes, in its order.

    Args:
        model: the fitted model.
        available: columns of the data.
        asked: the columns that the caller named; the model's own names win where it has them.

    Raises:
        DataError: the model was fitted on columns that the data does not have, or on another number of them.
    """
    own = getattr(model, "feature_names_in_", None)
    if own is not None:
        names = [str(n) for n in own]
        for name in names:
            if name not in available:
                raise DataError(
                    f"the model was fitted on column {name!r}, which the data does not have{closest(name, available)}"
                )
        return names
    names = list(available if asked is None else asked)
    width = getattr(model, "n_features_in_", None)
    if isinstance(width, int) and width != len(names):
        raise DataError(
            f"the model takes {width} features and the data has {len(names)}: name the columns that it takes, in its order"
        )
    return names


def table_for(model: Any, codes: Floats, plans: Sequence[Plan]) -> Any:
    """Encoded rows in the form that a model takes: a frame where it was fitted on one or there is text, else an array."""
    text = [p.name for p in plans if p.is_category]
    if getattr(model, "feature_names_in_", None) is None and not text:
        return codes
    if is_torch(model):
        raise DataError(
            f"column {text[0]!r} is text, which a torch module does not take: name the columns that it takes"
        )
    data = {plan.name: decode(codes[:, j], plan) for j, plan in enumerate(plans)}
    for plan in plans:
        if plan.integer and not np.isnan(data[plan.name]).any():
            data[plan.name] = data[plan.name].astype(np.int64)
    try:
        import pandas as pd
    except ModuleNotFoundError:
        from osler.data.need import need

        return need("polars", "data", "this model").DataFrame({n: v.tolist() for n, v in data.items()})
    return pd.DataFrame(data)


class Given:
    """A model that answers on encoded rows."""

    def __init__(self, model: Any, plans: Sequence[Plan]) -> None:
        self._model = model
        self._plans = plans
        self._predict = predictor(model)

    def __call__(self, codes: Floats) -> Floats:
        """(n, outputs) predictions.

        Raises:
            DataError: the model cannot be used on these columns.
        """
        X = table_for(self._model, codes, self._plans)
        try:
            return self._predict(X)
        except DataError:
            raise
        except Exception as error:
            text = str(error).strip().splitlines()
            raise DataError(
                f"the model could not predict from these columns: {text[0] if text else type(error).__name__}"
            ) from error
