"""Sources that must line up, and batches of one shape."""

from __future__ import annotations

from osler.core.finding import Severity
from osler.core.rule import Rule

_PART = "data"

RULES: tuple[Rule, ...] = (
    Rule(
        name="source-misaligned",
        part=_PART,
        severity=Severity.WARNING,
        summary="Sources that are joined disagree in their ids, their clocks or their rates.",
        why=(
            "A join never complains. Where ids are numbers in one table and zero-padded text in the other, it returns no "
            "rows, or nulls that are later filled with a mean. Where one clock is an hour off, an as-of join still finds a "
            "partner for every row: the wrong one, an hour older or, worse, an hour younger, which is the future. Where one "
            "source ticks at 10 Hz and the other at 1 Hz, nine rows in ten repeat a stale value or get none. A model trains "
            "on all of that without an error, and its offline score may even be good, because training and test are wrong in "
            "the same way.\n\n"
            "The kinds, as the evidence names them: `missing` and `extra` ids; `duplicate` ids that multiply rows; `type` and "
            "`format` (int against text, padding, case, spaces, ids that went through float64); `reuse` of one id for two "
            "entities; `zone`, `dst` and `naive-aware`; `units` (seconds read as milliseconds); `day-month`; `offset`, `drift` "
            "and `step` of a clock; `rounded` times; `scatter` beyond the tolerance; `rate` and `gaps`; `out-of-order` rows; "
            "`null-ids`, `null-times`, `mixed-zones`."
        ),
        fix=(
            "Mend the source, not the join. Store ids in one type (text keeps leading zeros) and timestamps in UTC with a zone, "
            "each attached where the value is read. Synchronise devices by NTP or PTP and correct what is already recorded by "
            "the offset and drift that the finding gives. Bring rates together on purpose: aggregate the fast source, or take the "
            "latest slow value with an as-of join and a tolerance. `osler.asof_join` asserts all of this at the join and refuses "
            "values from the future."
        ),
        bad=(
            "events['ts'] = pd.to_datetime(events['ts'])   # local time, no zone\n"
            "df = pd.merge_asof(sensors, events, on='ts')\n"
        ),
        good=(
            "events['ts'] = pd.to_datetime(events['ts']).dt.tz_localize('Europe/Berlin').dt.tz_convert('UTC')\n"
            "df = osler.asof_join(sensors, events, on='ts', tolerance='500ms', require=0.99).table\n"
        ),
        limits=(
            "A clock is judged only by what the sources share: ids that name one row on both sides, the pattern of irregular "
            "events, or a quantity that both measure (`values`). Regular sampling without one of these says nothing about the "
            "offset, and the report says so. Where an id names many rows (a foreign key), times are not those of one event and "
            "are not compared. Without a tolerance a plain offset is only `info`: it may be a delay that is meant; zones, "
            "units, exchanged days and months and clear drifts are reported all the same. A deliberate shift of exactly an hour "
            "looks like a zone: give a tolerance that covers it. Up to 5 % of ids without a partner are silent, and so are "
            "entities without events and rows outside the period that both sources cover. Rates are compared between regular "
            "sources only, and declared rates may differ. A clock that wanders to and fro is seen as jitter."
        ),
        causes=(),
        routes=("check",),
        links=(
            "https://pandas.pydata.org/docs/reference/api/pandas.merge_asof.html",
            "https://www.rfc-editor.org/rfc/rfc5905",
            "https://data.iana.org/time-zones/tz-link.html",
        ),
    ),
    Rule(
        name="ragged-batch",
        part=_PART,
        severity=Severity.WARNING,
        summary="Samples of one batch have different shapes where a batch needs one shape.",
        why=(
            "A tensor is a box: stacking sequences of 37 and 18 steps has no answer, and PyTorch's default collate function stops "
            "with `stack expects each tensor to be equal size`. That is the good case. With a batch size of 1, or while all the "
            "samples of the first epochs happen to be equal, it goes unnoticed until an odd sample comes along, hours into a "
            "training. numpy makes an array of objects of them, which is slow, cannot go to a GPU, and can be saved only by "
            "pickling. And padding by hand, without a mask or the lengths, lets the padding take part in the mean, the "
            "attention and the loss."
        ),
        fix=(
            "Pad in the collate function, not in the data set: `pad_sequence(sequences, batch_first=True, padding_value=…)` gives "
            "each batch the length of its own longest sample. Hand on the lengths or a mask, and use them in the loss, in "
            "attention and in pooling. Where padding fills most of a batch, put samples of similar length together (bucketing). "
            "If the other axes differ, that is no padding problem: mend the samples."
        ),
        bad="loader = DataLoader(sentences, batch_size=32)          # 5 to 80 tokens each\n",
        good=(
            "def collate(batch):\n"
            "    lengths = torch.tensor([len(x) for x in batch])\n"
            "    return pad_sequence(batch, batch_first=True, padding_value=PAD), lengths\n\n"
            "loader = DataLoader(sentences, batch_size=32, collate_fn=collate)\n"
        ),
        limits=(
            "Lengths that differ between batches are fine and silent, and so is a loader or data set whose collate function pads. "
            "A list column in a file says nothing about how it will be batched: unequal lengths there are `probable`; give the "
            "batch size where rows are read in order and sorted by length. Loaders are run in this process, up to the first 1,000 "
            "batches. Padding that cannot be told from data is only a suspicion (`possible`)."
        ),
        causes=(),
        routes=("check",),
        links=(
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_sequence.html",
            "https://docs.pytorch.org/docs/stable/data.html#working-with-collate-fn",
        ),
    ),
)
