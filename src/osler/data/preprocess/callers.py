"""Who in scikit-learn is asking: told from the frames above."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

_VALIDATION = ("sklearn/model_selection/_validation.py", "sklearn/model_selection/_search.py")
_FRAMES = 16  # how far up the caller of a splitter is looked for
_SPLIT_FRAMES = 6  # from a selection up to `train_test_split`


class Parts:
    """The two selections that `train_test_split` makes of each array, training rows first."""

    def __init__(self) -> None:
        self._last: tuple[int, int] = (0, 0)

    def is_second(self, data: object) -> bool:
        """Whether this selection from `data` is the part held out."""
        frame: FrameType | None = sys._getframe(2)
        for _ in range(_SPLIT_FRAMES):
            if frame is None:
                return False
            if frame.f_code.co_name == "train_test_split":
                pair = (id(frame), id(data))
                second = self._last == pair
                self._last = (0, 0) if second else pair
                return second
            frame = frame.f_back
        return False


def asked_by_validation() -> bool:
    """Whether a function of scikit-learn's cross-validation asks for the folds."""
    frame: FrameType | None = sys._getframe(2)
    for _ in range(_FRAMES):
        if frame is None:
            return False
        if frame.f_code.co_filename.replace("\\", "/").endswith(_VALIDATION):
            return True
        frame = frame.f_back
    return False


def workers_started() -> bool:
    """Whether joblib has started worker processes."""
    executor: Any = sys.modules.get("joblib.externals.loky.reusable_executor")
    return getattr(executor, "_executor", None) is not None
