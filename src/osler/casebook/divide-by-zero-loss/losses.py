"""Losses over partly labelled batches."""


def labelled_mean(error, labelled):
    """Mean error over the labelled rows."""
    return (error * labelled).sum() / labelled.sum()  # fault-here


def labelled_mean_or_zero(error, labelled):
    """Mean error over the labelled rows; 0 where there are none."""
    return (error * labelled).sum() / labelled.sum().clamp(min=1)
