"""How the model's part in summaries is joined: the compressor, its queue, and the thread that works through it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence

from orchestra_mem.adapters.database import Database, SqliteDraftStore, SqliteJobQueue, SqliteTrialLog
from orchestra_mem.compression.compressed import Compressed
from orchestra_mem.compression.compressor import MemoryCompressor
from orchestra_mem.compression.jobs import BackgroundWork, WorkLimits
from orchestra_mem.compression.refiner import SummaryRefiner
from orchestra_mem.compression.service import Compression
from orchestra_mem.core.summaries.compaction import Limits
from orchestra_mem.job_types import Job
from orchestra_mem.model_types import LanguageModel
from orchestra_mem.ports import Clock, EventLog, Ledger, TokenCounter
from orchestra_mem.settings import Settings
from orchestra_mem.types import Summary


def open_compression(
    model: LanguageModel | None,
    settings: Settings,
    database: Database,
    *,
    log: EventLog,
    ledger: Ledger,
    counter: TokenCounter,
    clock: Clock,
    limits: Limits,
    busy: Callable[[], bool],
    section: Callable[[Summary], str | None],
    doubts: Callable[[], Sequence[str]],
    read_only: bool,
) -> Compression:
    """Join the parts; nothing works before `start`."""
    drafts, trials, queue = SqliteDraftStore(database), SqliteTrialLog(database), SqliteJobQueue(database)
    compressor = MemoryCompressor(
        model, counter=counter, clock=clock, timeout_s=settings.llm.timeout_s, trials=None if read_only else trials
    )
    improver = SummaryRefiner(
        compressor,
        log=log,
        ledger=ledger,
        drafts=drafts,
        counter=counter,
        clock=clock,
        limits=limits,
        section=section,
    )

    def improve(job: Job, cancelled: Callable[[], bool]) -> Compressed | None:
        return improver.improve(job.summary, insist=job.priority == 0, cancelled=cancelled)

    work = BackgroundWork(
        queue,
        improve,
        clock=clock,
        owner=f"{os.getpid()} {uuid.uuid4().hex}",
        busy=busy,
        limits=WorkLimits(max_jobs=settings.compression.max_jobs, max_attempts=settings.compression.max_attempts),
    )
    return Compression(
        compressor,
        improver=improver,
        work=work,
        log=log,
        ledger=ledger,
        queue=queue,
        drafts=drafts,
        trials=trials,
        doubts=doubts,
        auto=settings.compression.auto and not read_only,
    )
