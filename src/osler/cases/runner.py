"""Verifying many cases at once."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

from osler.cases.execute import OSLER_RUN, BudgetName, Processes
from osler.cases.library import Case, HealthyScript
from osler.cases.progress import Progress, fingerprint
from osler.cases.screen import Watcher
from osler.cases.verdict import Outcome, Verdict
from osler.cases.verify import verify, verify_healthy


@dataclass(frozen=True, slots=True)
class Job:
    """One case or healthy script under one budget."""

    subject: Case | HealthyScript
    budget: BudgetName

    @property
    def kind(self) -> str:
        """`case` or `healthy`."""
        return "case" if isinstance(self.subject, Case) else "healthy"


@dataclass(frozen=True, slots=True)
class Options:
    """How to verify.

    Attributes:
        jobs: how many at once.
        bare: run every script in plain Python too.
        timeout_s: seconds allowed to a script; None: by its cost.
        osler_run: the command that stands for `osler run`.
    """

    jobs: int = 1
    bare: bool = False
    timeout_s: float | None = None
    osler_run: tuple[str, ...] = OSLER_RUN


@dataclass(slots=True)
class Outcomes:
    """What came of a verification.

    Attributes:
        verdicts: in the order of the jobs, those that were judged.
        wanted: how many jobs there were.
        interrupted: it was stopped before the end.
    """

    verdicts: list[Verdict] = field(default_factory=list)
    wanted: int = 0
    interrupted: bool = False

    @property
    def failures(self) -> list[Verdict]:
        """Those that failed, worst first."""
        return sorted((v for v in self.verdicts if v.outcome.failed), key=lambda v: (v.outcome.rank, v.id, v.budget))

    @property
    def exit_code(self) -> int:
        """0 all passed or were skipped, 1 some failed, 130 interrupted."""
        if self.interrupted:
            return 130
        return 1 if self.failures else 0


def run_all(jobs: Sequence[Job], options: Options, progress: Progress, watcher: Watcher) -> Outcomes:
    """Verify the jobs in parallel; each is a matter of subprocesses, so threads are enough.

    Jobs that passed before, by `progress`, are not run again. ^C and SIGTERM end what is running and give the verdicts
    so far.
    """
    out = Outcomes(wanted=len(jobs))
    verdicts: dict[int, Verdict] = {}
    prints = {i: _fingerprint(job, options) for i, job in enumerate(jobs)}
    for i, job in enumerate(jobs):
        earlier = progress.passed(job.kind, job.subject.id, job.budget, prints[i])
        if earlier is not None:
            verdicts[i] = earlier
            watcher.done(earlier)
    # The longest first: the last one to start should not be the one everybody waits for.
    waiting = sorted((i for i in range(len(jobs)) if i not in verdicts), key=lambda i: -jobs[i].subject.cost_s)
    processes = Processes()
    pool = ThreadPoolExecutor(max_workers=max(1, options.jobs), thread_name_prefix="case")
    futures: dict[Future[Verdict], int] = {}
    try:
        with _sigterm_as_interrupt():
            futures = {pool.submit(_judge, jobs[i], options, processes): i for i in waiting}
            for future in as_completed(futures):
                i = futures[future]
                verdicts[i] = future.result()
                progress.record(verdicts[i], prints[i])
                watcher.done(verdicts[i])
    except KeyboardInterrupt:
        out.interrupted = True
        pool.shutdown(wait=False, cancel_futures=True)
        processes.stop()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    out.verdicts = [verdicts[i] for i in sorted(verdicts)]
    return out


def _judge(job: Job, options: Options, processes: Processes) -> Verdict:
    threads = max(1, (os.cpu_count() or 1) // max(1, options.jobs)) if options.jobs > 1 else None
    try:
        if isinstance(job.subject, Case):
            return verify(
                job.subject,
                job.budget,
                bare=options.bare,
                timeout_s=options.timeout_s,
                processes=processes,
                osler_run=options.osler_run,
                threads=threads,
            )
        return verify_healthy(
            job.subject,
            job.budget,
            bare=options.bare,
            timeout_s=options.timeout_s,
            processes=processes,
            osler_run=options.osler_run,
            threads=threads,
        )
    except OSError as err:
        rule = job.subject.rule if isinstance(job.subject, Case) else ""
        reason = f"it could not be run: {err}"
        return Verdict(job.subject.id, job.budget, Outcome.CRASHED, reason, job.kind, rule, reasons=[reason])


def _fingerprint(job: Job, options: Options) -> str:
    more = [job.budget, str(options.bare), *options.osler_run]
    if isinstance(job.subject, HealthyScript):
        more.append(job.subject.file.model_dump_json())
    return fingerprint(job.subject.folder, *more)


@contextlib.contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Within, SIGTERM ends the verification as ^C does; only the main thread may ask for that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
