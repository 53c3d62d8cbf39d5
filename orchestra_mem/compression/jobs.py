"""Background work: improve summaries one at a time, and yield the model to foreground calls and other processes.

Jobs are stored in the database, and a lease lets one process at a time run them; another can take over. An interrupted
job is put back in the queue. A failed job is retried with a growing delay, and given up after some attempts.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestra_mem.compression.timeouts import InterruptedGenerationError
from orchestra_mem.errors import ClosedError, NotFoundError, OrchestraMemError, StorageError
from orchestra_mem.job_types import STALLED, Job, JobState, TrialVerdict
from orchestra_mem.ports import Clock
from orchestra_mem.stores import JobQueue

if TYPE_CHECKING:
    from orchestra_mem.compression.compressor import Compressed

logger = logging.getLogger(__name__)

# Duration of a lease in seconds, after which another process takes over from a killed one. Renewed after a third of it.
_LEASE_S = 60.0
_LOOK_EVERY_S = 5.0
# Delay before the first job, so that a short command starts no job. A new job ends the delay.
_FIRST_LOOK_S = 2.0
_BUSY_WAIT_S = 0.5
# Interval for asking the database whether another process needs the model: a query per token would be too many.
_LOOK_ABROAD_S = 0.02
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 30.0, 600.0
_JOIN_S = 5.0
# A request for the model expires after this time, as a killed process cannot withdraw its request.
_LONGEST_FOREGROUND = timedelta(minutes=10)


@dataclass(eq=False)
class BackgroundWork:
    """Runs jobs in a dedicated thread, from `start` to `close`.

    Attributes:
        queue: Stores the jobs.
        improve: Runs a job. Must raise `InterruptedGenerationError` soon after the function passed to it returns True.
        clock: Returns the present time.
        owner: Unique name of this memory object, used as the holder of leases.
        busy: Reports whether the model is answering another program.
        max_jobs: Maximum number of waiting jobs.
        max_attempts: Maximum number of attempts per job.
    """

    queue: JobQueue
    improve: Callable[[Job, Callable[[], bool]], Compressed | None]
    _: KW_ONLY
    clock: Clock
    owner: str
    busy: Callable[[], bool] = lambda: False
    max_jobs: int = 200
    max_attempts: int = 3

    def __post_init__(self) -> None:
        """Begin without a thread."""
        # Number of foreground users of the model in this process.
        self._users = 0
        self._users_changed = threading.Condition()
        self._closing = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._renewed = self._looked = 0.0
        self._wanted_elsewhere = False
        self._telling = threading.Lock()
        self._told_until: datetime | None = None

    def start(self) -> None:
        """Start the thread. Does nothing if it is running."""
        if self._thread is None:
            self._wake.clear()  # jobs offered so far do not end the delay
            self._thread = threading.Thread(target=self._run, name="orchestra-mem background", daemon=True)
            self._thread.start()

    def offer(self, subject: str, priority: int) -> None:
        """Enqueue a job to improve a summary, and wake the thread."""
        self.queue.put(subject, priority=priority, now=self.clock(), most=self.max_jobs)
        self._wake.set()

    @contextmanager
    def foreground(self) -> Iterator[None]:
        """Keep background jobs off the model. A running job stops at the next token and is put back in the queue."""
        with self._users_changed:
            self._users += 1
        try:
            self._tell_others()
            yield
        finally:
            with self._users_changed:
                self._users -= 1
                self._users_changed.notify_all()
            self._tell_others()

    def _tell_others(self) -> None:
        """Inform another process that runs the jobs whether this process needs the model."""
        with self._telling, suppress(OrchestraMemError):  # a storage error must not block the foreground
            wanted, now = self._users > 0, self.clock()
            told = self._told_until is not None and self._told_until > now + _LONGEST_FOREGROUND / 2
            if wanted and not told and self.queue.other_holds_lease(self.owner, now):
                self.queue.announce(self.owner, until=now + _LONGEST_FOREGROUND)
                self._told_until = now + _LONGEST_FOREGROUND
            elif not wanted and self._told_until is not None:
                self.queue.withdraw(self.owner)
                self._told_until = None

    def close(self) -> None:
        """Stop the thread, waiting up to 5 s for the model to stop, and put the running job back in the queue."""
        self._closing.set()
        self._wake.set()
        if self._told_until is not None:
            with suppress(OrchestraMemError):
                self.queue.withdraw(self.owner)
        if self._thread is not None:
            self._thread.join(_JOIN_S)
            with suppress(OrchestraMemError):
                self.queue.resign(self.owner)
            self._thread = None

    def _run(self) -> None:
        self._wake.wait(_FIRST_LOOK_S)
        tried_again = False
        while not self._closing.is_set():
            try:
                tried_again = tried_again or self._try_again()
                pause_s = self.step()
            except ClosedError:
                return
            except Exception as error:  # such as a storage error: the next attempt may succeed
                unforeseen = not isinstance(error, OrchestraMemError)
                logger.warning("background work failed and pauses: %s", error, exc_info=unforeseen)
                pause_s = _FIRST_PAUSE_S
            if pause_s > _LOOK_EVERY_S:
                self._closing.wait(pause_s)  # a new job must not end this pause: it would fail as well
            elif pause_s and not self._closing.is_set():
                self._wake.wait(pause_s)
                self._wake.clear()

    def _try_again(self) -> bool:
        """Requeue failed jobs, as the model may work now; jobs that may have crashed a process stay failed."""
        now = self.clock()
        given_up = [job for job in self.queue.jobs() if job.state is JobState.FAILED and job.error != STALLED]
        if given_up and self.queue.lead(self.owner, now=now, until=now + timedelta(seconds=_LEASE_S)):
            for job in given_up:
                self.offer(job.subject, job.priority)
        return True

    def step(self) -> float:
        """Run a job if one is due and the model is free. Return the delay before the next step, in seconds."""
        with self._users_changed:
            is_free = self._users_changed.wait_for(lambda: not self._users, _BUSY_WAIT_S)
        if not is_free:
            self._tell_others()  # another process may have just taken over the jobs
            return 0.0
        now = self.clock()
        until = now + timedelta(seconds=_LEASE_S)
        if not self.queue.due(now) or not self.queue.lead(self.owner, now=now, until=until):
            return _LOOK_EVERY_S
        if self.queue.announced(self.owner, now) or self.busy():
            return _BUSY_WAIT_S
        job = self.queue.take(self.owner, now=now, until=until)
        if job is None:
            return _LOOK_EVERY_S
        if job.attempts >= self.max_attempts:
            self.queue.fail(job, job.error, due=None)
            return 0.0
        return self._do(job)

    def _do(self, job: Job) -> float:
        self._renewed = time.monotonic()
        self._looked, self._wanted_elsewhere = 0.0, False
        try:
            done = self.improve(job, lambda: self._interrupted(job))
        except InterruptedGenerationError:
            self.queue.give_back(job, due=self.clock())
            return 0.0
        except ClosedError:
            raise
        except NotFoundError:
            self.queue.finish(job)
            return 0.0
        except Exception as error:  # such as a storage error: a retry may succeed
            unforeseen = not isinstance(error, OrchestraMemError)
            logger.warning("could not improve %s", job.subject, exc_info=unforeseen)
            return self._failed(job, str(error) or type(error).__name__)
        if done is None or done.verdict is not TrialVerdict.FAILED:
            self.queue.finish(job)
            return 0.0
        return self._failed(job, done.fault)

    def _failed(self, job: Job, fault: str) -> float:
        """Schedule the next attempt of a job or give it up. Return the delay before the next step, in seconds."""
        last = job.attempts + 1 >= self.max_attempts
        # All jobs pause, as the cause of the model's failure most likely affects the other jobs as well.
        pause_s: float = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**job.attempts) * random.uniform(0.8, 1.2)
        self.queue.fail(job, fault, due=None if last else self.clock() + timedelta(seconds=pause_s))
        logger.warning("improving %s failed and is retried later: %s", job.subject, fault)
        return pause_s

    def _interrupted(self, job: Job) -> bool:
        """Check whether a running job has to stop, and renew its lease. Called for every token."""
        if self._closing.is_set() or self._users:
            return True
        now = self.clock()
        with suppress(StorageError):  # if the storage fails, no other process can take the job either
            if time.monotonic() - self._renewed > _LEASE_S / 3:
                self._renewed = time.monotonic()
                until = now + timedelta(seconds=_LEASE_S)
                self.queue.renew(job, until=until)
                if not self.queue.lead(self.owner, now=now, until=until):
                    return True
            if time.monotonic() - self._looked > _LOOK_ABROAD_S:
                self._looked = time.monotonic()
                self._wanted_elsewhere = self.queue.announced(self.owner, now)
        return self._wanted_elsewhere
