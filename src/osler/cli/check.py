"""`osler check …`: one verb a check, each of which calls one function of `osler.app.check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from osler.cli.options import SUB, examples
from osler.cli.wishes import Columns, listed, wishing

app = typer.Typer(
    help="Look at data: splits, labels, drift, missing values, sources. FILE is a file, a glob, a folder or - (stdin).",
    epilog=examples(
        "osler check drift last_month.parquet today.parquet", "osler check splits --train a.csv --eval b.csv"
    ),
    **SUB,  # type: ignore[arg-type]
)

Label = Annotated[str | None, typer.Option("--label", metavar="COL", help="The column that is to be predicted.")]
Time = Annotated[str | None, typer.Option("--time", metavar="COL", help="The column that says when.")]


@app.command(
    epilog=examples(
        "osler check drift last_month.parquet today.parquet",
        "osler check drift reference.profile 'day=*/part-*.parquet' --html drift.html",
        "osler check drift ref.csv log.csv --time ts --window 1h",
    )
)
@wishing
def drift(
    reference: Annotated[str, typer.Argument(metavar="REFERENCE", help="Data, or a profile of it.")],
    current: Annotated[str, typer.Argument(metavar="CURRENT", help="Data, or a profile of it.")],
    columns: Columns = None,
    categorical: Annotated[list[str] | None, typer.Option(metavar="NAME,…", help="Judge these as categories.")] = None,
    numeric: Annotated[list[str] | None, typer.Option(metavar="NAME,…", help="Judge these as numbers.")] = None,
    time: Time = None,
    window: Annotated[
        str | None, typer.Option(metavar="SPAN", help="With --time: judge window by window, 1h, 1d.")
    ] = None,
    *,
    wishes: Any,
) -> int:
    """Say which columns have moved, how far, and since when."""
    from osler.app.check import check
    from osler.data.drift import check_drift

    return check(
        lambda settings, progress: check_drift(
            reference,
            current,
            columns=listed(columns) or None,
            categorical=listed(categorical),
            numeric=listed(numeric),
            time=time,
            window=window,
            settings=settings,
            progress=progress,
        ),
        wishes,
    )


@app.command(
    epilog=examples(
        "osler check splits --train train.parquet --eval test.parquet --label churned",
        "osler check splits --train a.csv --eval b.csv --time ts --gap 7d --group user_id",
        "osler check splits --train images/train --eval images/test --images .",
    )
)
@wishing
def splits(
    train: Annotated[str, typer.Option("--train", metavar="FILE", help="The training rows.")],
    eval_: Annotated[str, typer.Option("--eval", metavar="FILE", help="The rows that judge.")],
    time: Time = None,
    group: Annotated[
        list[str] | None, typer.Option(metavar="COL,…", help="What must be on one side: a user, a patient.")
    ] = None,
    label: Label = None,
    columns: Columns = None,
    gap: Annotated[str | None, typer.Option(metavar="SPAN", help="Time to leave before evaluation: 7d.")] = None,
    embargo: Annotated[str | None, typer.Option(metavar="SPAN", help="Time to leave after evaluation: 1d.")] = None,
    text: Annotated[
        list[str] | None, typer.Option(metavar="COL,…", help="Columns of text, compared by MinHash.")
    ] = None,
    images: Annotated[
        list[str] | None, typer.Option(metavar="COL,…", help="Columns of image paths; for folders of images, any word.")
    ] = None,
    label_time: Annotated[str | None, typer.Option(metavar="COL", help="When the label became known.")] = None,
    feature_time: Annotated[
        list[str] | None, typer.Option(metavar="FEATURE=COL", help="When a feature was last changed; repeatable.")
    ] = None,
    near: Annotated[bool, typer.Option("--near/--exact", help="Also nearly equal rows.")] = True,
    *,
    wishes: Any,
) -> int:
    """Say which training rows the evaluation should not have: duplicates, the same group, the future, leaks."""
    from osler.app.check import check, pairs
    from osler.data.splits import check_splits

    return check(
        lambda settings, progress: check_splits(
            train,
            eval_,
            time=time,
            group=listed(group),
            label=label,
            columns=listed(columns) or None,
            gap=gap,
            embargo=embargo,
            text=listed(text),
            images=listed(images),
            label_time=label_time,
            feature_times=pairs(feature_time, "--feature-time"),
            near=near,
            settings=settings,
            progress=progress,
        ),
        wishes,
    )


@app.command(
    epilog=examples(
        "osler check labels --labels y.npy --pred-probs p.npy --ranked suspects.csv",
        "osler check labels --labels train.csv:label --features train.csv --classes cat,dog,bird",
    )
)
@wishing
def labels(
    labels: Annotated[str, typer.Option("--labels", metavar="FILE[:COL]", help="The given labels.")],
    pred_probs: Annotated[
        str | None, typer.Option("--pred-probs", metavar="FILE", help="Out-of-fold probabilities, a column a class.")
    ] = None,
    features: Annotated[
        str | None, typer.Option(metavar="FILE", help="Without probabilities: features to cross-validate a model on.")
    ] = None,
    classes: Annotated[str | None, typer.Option(metavar="NAMES", help="Class names: a,b,c or a file of them.")] = None,
    out_of_fold: Annotated[
        bool | None,
        typer.Option(
            "--out-of-fold/--in-sample",
            help="Whether no row was predicted by a model trained on it.",
            show_default=False,
        ),
    ] = None,
    logits: Annotated[bool, typer.Option("--logits", help="The predictions are logits.")] = False,
    ignore_index: Annotated[int, typer.Option(metavar="N", help="The label of rows that have none.")] = -100,
    ranked: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the suspicious labels, worst first (.csv, .parquet).")
    ] = None,
    soft: Annotated[Path | None, typer.Option(metavar="FILE.npy", help="Write soft targets, a column a class.")] = None,
    cleaned: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every label with its verdict (.csv, .parquet, .npy).")
    ] = None,
    beside: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --cleaned: the table whose columns stand beside them.")
    ] = None,
    *,
    wishes: Any,
) -> int:
    """Say which labels are no classes, and which are contradicted by out-of-fold predictions."""
    from osler.app.labels import Files, look

    return look(
        labels,
        pred_probs,
        features=features,
        classes=classes,
        out_of_fold=out_of_fold,
        logits=logits,
        ignore_index=ignore_index,
        files=Files(ranked, soft, cleaned, beside),
        wishes=wishes,
    )


@app.command(
    epilog=examples("osler check mapping config.json model.onnx", "osler check mapping a.txt b.json --traffic p.npy")
)
@wishing
def mapping(
    training: Annotated[
        str, typer.Argument(metavar="TRAINING", help="Class list: JSON, text, .npy, ONNX, safetensors.")
    ],
    serving: Annotated[str, typer.Argument(metavar="SERVING", help="The class list that predictions are named by.")],
    traffic: Annotated[
        str | None, typer.Option(metavar="FILE", help="Predictions or counts, to weigh the damage.")
    ] = None,
    *,
    wishes: Any,
) -> int:
    """Say whether an index means the same class in training and in serving."""
    from osler.app.check import check
    from osler.data.labels import check_mapping

    return check(
        lambda settings, progress: check_mapping(
            training, serving, traffic=traffic, settings=settings, progress=progress
        ),
        wishes,
    )


@app.command(
    epilog=examples(
        "osler check monitor last_month.parquet today.parquet --time ts --window 1h --every 10min",
        "osler check monitor ref.profile 'logs/*.parquet' --window 1000 --state drift.state --webhook http://localhost:9000",
    )
)
@wishing
def monitor(
    reference: Annotated[str, typer.Argument(metavar="REFERENCE", help="Data, or a profile of it.")],
    current: Annotated[str, typer.Argument(metavar="CURRENT", help="Data in the order in which they came.")],
    window: Annotated[
        str, typer.Option(metavar="SPAN", help="Length of a window: 1h with --time, or a number of rows.")
    ],
    every: Annotated[
        str | None, typer.Option(metavar="SPAN", help="From one window to the next; the window itself.")
    ] = None,
    time: Time = None,
    columns: Columns = None,
    webhook: Annotated[str | None, typer.Option(metavar="URL", help="Told by POST when fresh samples are due.")] = None,
    state: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Go on from this state if it is there, and keep it.")
    ] = None,
    *,
    wishes: Any,
) -> int:
    """Watch for drift window by window; exit code 1 when it stays so long that fresh samples are due."""
    from osler.app.monitor import watch

    return watch(
        reference,
        current,
        window=window,
        every=every,
        time=time,
        columns=listed(columns) or None,
        webhook=webhook,
        state=state,
        wishes=wishes,
    )


@app.command(epilog=examples("osler check shift train_embeddings.npy live_embeddings.npy --window 1000"))
@wishing
def shift(
    reference: Annotated[str, typer.Argument(metavar="REFERENCE", help="Rows of features or embeddings.")],
    current: Annotated[str, typer.Argument(metavar="CURRENT", help="Rows of the same columns.")],
    columns: Columns = None,
    window: Annotated[int | None, typer.Option(metavar="ROWS", min=2, help="Judge the last so many rows.")] = None,
    *,
    wishes: Any,
) -> int:
    """Say whether many features have moved together, by KL divergence and MMD."""
    from osler.app.check import check
    from osler.data.shift import check_shift

    return check(
        lambda settings, progress: check_shift(
            reference, current, columns=listed(columns) or None, window=window, settings=settings, progress=progress
        ),
        wishes,
    )


@app.command(
    epilog=examples(
        "osler check missing today.parquet --reference train.parquet --label churned", "osler check missing data.csv"
    )
)
@wishing
def missing(
    data: Annotated[str, typer.Argument(metavar="DATA", help="The rows to look at.")],
    reference: Annotated[str | None, typer.Option(metavar="FILE", help="The rows that training saw.")] = None,
    label: Label = None,
    columns: Columns = None,
    *,
    wishes: Any,
) -> int:
    """Say where values are missing in features that a model leans on, and how to fill them."""
    from osler.app.check import check
    from osler.data.missing import check_missing

    return check(
        lambda settings, progress: check_missing(
            data,
            reference=reference,
            label=label,
            columns=listed(columns) or None,
            settings=settings,
            progress=progress,
        ),
        wishes,
    )


@app.command(epilog=examples("osler check outliers train.parquet today.parquet"))
@wishing
def outliers(
    reference: Annotated[str, typer.Argument(metavar="REFERENCE", help="The rows that training saw.")],
    current: Annotated[str, typer.Argument(metavar="CURRENT", help="The rows to look at.")],
    columns: Columns = None,
    *,
    wishes: Any,
) -> int:
    """Say which rows lie outside what training saw, and in which column."""
    from osler.app.check import check
    from osler.data.missing import check_outliers

    return check(
        lambda settings, progress: check_outliers(
            reference, current, columns=listed(columns) or None, settings=settings, progress=progress
        ),
        wishes,
    )


@app.command(epilog=examples("osler check preprocess trained.json serving.json"))
@wishing
def preprocess(
    training: Annotated[str, typer.Argument(metavar="TRAINING", help="A snapshot: osler.snapshot(pipeline).save(…).")],
    serving: Annotated[str, typer.Argument(metavar="SERVING", help="A snapshot of what serves.")],
    tolerance: Annotated[
        float | None, typer.Option(min=0, help="Change of a number, in spreads of its column, that counts as none.")
    ] = None,
    *,
    wishes: Any,
) -> int:
    """Say what has changed in fitted preprocessing between training and serving."""
    from osler.app.check import check
    from osler.data.preprocess import check_preprocess

    return check(
        lambda settings, progress: check_preprocess(
            training, serving, tolerance=tolerance, settings=settings, progress=progress
        ),
        wishes,
    )


@app.command(
    epilog=examples(
        "osler check sources orders.parquet payments.parquet --id order_id --time ts --tolerance 500ms",
        "osler check sources gps.csv can.csv --time t --rates 1Hz,10Hz",
    )
)
@wishing
def sources(
    sources: Annotated[
        list[str], typer.Argument(metavar="A B …", help="Two or more sources; the first is the reference.")
    ],
    id_: Annotated[
        list[str] | None, typer.Option("--id", metavar="COL,…", help="The columns that join; a=b where they differ.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="COL", help="The column that says when; a=b where they differ.")
    ] = None,
    tolerance: Annotated[str | None, typer.Option(metavar="SPAN", help="How far times may lie apart: 500ms.")] = None,
    values: Annotated[str | None, typer.Option(metavar="COL", help="A quantity that all of them measure.")] = None,
    rates: Annotated[str | None, typer.Option(metavar="RATE,…", help="How often each has a row: 10Hz,1Hz.")] = None,
    static: Annotated[
        list[str] | None,
        typer.Option(metavar="COL,…", help="Columns that never change for one id, to find reused ids."),
    ] = None,
    *,
    wishes: Any,
) -> int:
    """Say whether sources line up: ids, clocks, zones, units and rates."""
    from osler.app.check import check
    from osler.data.sources import check_sources

    return check(
        lambda settings, progress: check_sources(
            sources,
            id=",".join(listed(id_)) or (),
            time=time,
            tolerance=tolerance,
            values=values,
            rates=rates,
            static=listed(static) or None,
            settings=settings,
            progress=progress,
        ),
        wishes,
    )


@app.command(epilog=examples("osler check batches sentences.parquet --column tokens --batch-size 32"))
@wishing
def batches(
    data: Annotated[str, typer.Argument(metavar="DATA", help="Samples: a table with a list column, .npy, .npz.")],
    column: Annotated[str | None, typer.Option(metavar="COL", help="The list column.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, metavar="ROWS", help="Rows of a batch, in order.")] = None,
    axis: Annotated[int | None, typer.Option(min=0, help="The axis along which lengths may differ.")] = None,
    *,
    wishes: Any,
) -> int:
    """Say whether the samples of a batch have one shape."""
    from osler.app.check import check
    from osler.data.sources import check_batches

    return check(
        lambda settings, progress: check_batches(
            data, column=column, batch_size=batch_size, axis=axis, settings=settings, progress=progress
        ),
        wishes,
    )
