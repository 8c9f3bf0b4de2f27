"""Names inside a run's folder `.osler/runs/<run>/` and the environment variables that carry it to a process."""

from __future__ import annotations

RUN_DIR = "OSLER_RUN_DIR"  # absolute path of the run's folder; its presence is what wakes osler up in a process
DISABLE = "OSLER_DISABLE"  # any non-empty value: osler stays out of this process and of all it starts

PLAN = "plan.json"  # what the parent wants of the watched processes: settings, options
SUBJECT = "subject.json"  # command, start time, exit code; written by the parent
JOURNAL = "journal-{pid}-{start}.jsonl"  # one per process, append-only
ARRAYS = "arrays-{pid}-{start}.f32"  # float32 matrices that the journal's `matrix` records point into
DUMPS = "dumps"
