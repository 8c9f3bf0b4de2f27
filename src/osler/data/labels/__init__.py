"""Labels: wrong ones, odd encodings, and class lists that disagree.

audit = audit_labels("y.npy", "pred_probs.npy")      # out-of-fold predictions
audit.ranked(20)                                     # the most suspicious labels, with what they should be
report = check_labels("y.npy", "pred_probs.npy")     # encoding and noise, as a report
report = check_mapping("train.json", "config.json")  # does an index mean the same class on both sides?
"""

from osler.data.labels.audit import LabelAudit, Ranked, audit_labels
from osler.data.labels.check import check_labels
from osler.data.labels.classlists import ClassList, read_classes
from osler.data.labels.encoding import check_encoding
from osler.data.labels.folds import cross_validated_probs
from osler.data.labels.mapping import check_mapping
from osler.data.labels.read import read_labels, read_probs

__all__ = [
    "ClassList",
    "LabelAudit",
    "Ranked",
    "audit_labels",
    "check_encoding",
    "check_labels",
    "check_mapping",
    "cross_validated_probs",
    "read_classes",
    "read_labels",
    "read_probs",
]
