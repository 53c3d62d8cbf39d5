"""Background work: summaries are bettered one after the other, and whoever else wants the model comes first.

One process at a time works, by a lease; jobs lie in the database, so that another goes on where one has ended. A job
that was interrupted waits again, one that failed waits longer each time, and one that keeps failing is given up.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

from orchestra_mem.compression.compressed import Compressed
from orchestra_mem.compression.timeouts import InterruptedGenerationError
from orchestra_mem.errors import ClosedError, NotFoundError, OrchestraMemError, StorageError
from orchestra_mem.job_types import STALLED, Job, JobQueue, JobState, TrialVerdict
from orchestra_mem.ports import Clock

logger = logging.getLogger(__name__)

# Seconds. A job of a process that was killed is another's after this; it is renewed each third of it.
_LEASE_S = 60.0
_LOOK_EVERY_S = 5.0
# A command that ends soon begins nothing; what is new is begun at once.
_FIRST_LOOK_S = 2.0
_BUSY_WAIT_S = 0.5
# Whether another process wants the model is asked of the database, and not with every token of a quick one.
_LOOK_ABROAD_S = 0.02
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 30.0, 600.0
_JOIN_S = 5.0
# However long somebody says that the model is wanted, a process that was killed has not said that it is no longer.
_LONGEST_FOREGROUND = timedelta(minutes=10)


class BackgroundWork:
    """Does jobs in a thread of its own, from `start` to `close`.

    Args:
        queue: holds the jobs.
        improve: does one; raises `InterruptedGenerationError` where the function given says that it is to end.
        clock: gives the present time.
        owner: names this process's memory among others.
        busy: whether the model answers somebody outside of this program.
        max_jobs: how many may wait.
        max_attempts: how often one is tried.
    """

    def __init__(
        self,
        queue: JobQueue,
        improve: Callable[[Job, Callable[[], bool]], Compressed | None],
        *,
        clock: Clock,
        owner: str,
        busy: Callable[[], bool] = lambda: False,
        max_jobs: int = 200,
        max_attempts: int = 3,
    ) -> None:
        self._queue = queue
        self._improve = improve
        self._clock = clock
        self._owner = owner
        self._busy = busy
        self._max_jobs = max_jobs
        self._max_attempts = max_attempts
        # Who in this process uses the model for something that does not wait.
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
        """Begin to do what waits."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="orchestra-mem background", daemon=True)
            self._thread.start()

    def offer(self, subject: str, priority: int) -> None:
        """Let a summary wait to be bettered."""
        self._queue.put(subject, priority=priority, now=self._clock(), most=self._max_jobs)
        self._wake.set()

    @contextmanager
    def foreground(self) -> Iterator[None]:
        """Keep background work off the model; a generation under way ends within a token and waits again."""
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
        """Let the process that works in the background know whether the model is wanted here."""
        with self._telling, suppress(OrchestraMemError):  # a disk that refuses keeps nobody from the model
            wanted, now = self._users > 0, self._clock()
            told = self._told_until is not None and self._told_until > now + _LONGEST_FOREGROUND / 2
            if wanted and not told and self._queue.another_leads(self._owner, now):
                self._queue.announce(self._owner, until=now + _LONGEST_FOREGROUND)
                self._told_until = now + _LONGEST_FOREGROUND
            elif not wanted and self._told_until is not None:
                self._queue.withdraw(self._owner)
                self._told_until = None

    def close(self) -> None:
        """End the thread; what it was at waits again. A model that does not stop is not waited for."""
        self._closing.set()
        self._wake.set()
        if self._told_until is not None:
            with suppress(OrchestraMemError):
                self._queue.withdraw(self._owner)
        if self._thread is not None:
            self._thread.join(_JOIN_S)
            with suppress(OrchestraMemError):
                self._queue.resign(self._owner)
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
            except Exception as error:  # of the disk, for one: the next look may do better
                unforeseen = not isinstance(error, OrchestraMemError)
                logger.warning("background work pauses: %s", error, exc_info=unforeseen)
                pause_s = _FIRST_PAUSE_S
            if pause_s > _LOOK_EVERY_S:
                self._closing.wait(pause_s)  # new jobs would fare no better
            elif pause_s and not self._closing.is_set():
                self._wake.wait(pause_s)
                self._wake.clear()

    def _try_again(self) -> bool:
        """Let what was given up wait once more, as the model may be had now; not what took a process with it."""
        now = self._clock()
        given_up = [job for job in self._queue.jobs() if job.state is JobState.FAILED and job.error != STALLED]
        if given_up and self._queue.lead(self._owner, now=now, until=now + timedelta(seconds=_LEASE_S)):
            for job in given_up:
                self.offer(job.subject, job.priority)
        return True

    def step(self) -> float:
        """Do a job, if there is one and the model is free; how long to wait before the next look, in seconds."""
        with self._users_changed:
            is_free = self._users_changed.wait_for(lambda: not self._users, _BUSY_WAIT_S)
        if not is_free:
            self._tell_others()  # whoever has begun to work in the background since does not know
            return 0.0
        now = self._clock()
        until = now + timedelta(seconds=_LEASE_S)
        if not self._queue.due(now) or not self._queue.lead(self._owner, now=now, until=until):
            return _LOOK_EVERY_S
        if self._queue.announced(self._owner, now) or self._busy():
            return _BUSY_WAIT_S
        job = self._queue.take(self._owner, now=now, until=until)
        if job is None:
            return _LOOK_EVERY_S
        if job.attempts >= self._max_attempts:
            self._queue.fail(job, job.error, due=None)
            return 0.0
        return self._do(job)

    def _do(self, job: Job) -> float:
        self._renewed = time.monotonic()
        self._looked, self._wanted_elsewhere = 0.0, False
        try:
            done = self._improve(job, lambda: self._interrupted(job))
        except InterruptedGenerationError:
            self._queue.give_back(job, due=self._clock())
            return 0.0
        except ClosedError:
            raise
        except NotFoundError:
            self._queue.finish(job)
            return 0.0
        except Exception as error:  # of the disk, for one: another time it may go well
            logger.warning("%s could not be bettered", job.subject, exc_info=True)
            return self._failed(job, str(error) or type(error).__name__)
        if done is None or done.verdict is not TrialVerdict.FAILED:
            self._queue.finish(job)
            return 0.0
        return self._failed(job, done.fault)

    def _failed(self, job: Job, fault: str) -> float:
        """Let a job wait for its next attempt, or give it up; how long to wait before the next look, in seconds."""
        last = job.attempts + 1 >= self._max_attempts
        # Whatever keeps the model from answering keeps it from the other jobs too: all of them wait.
        pause_s: float = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**job.attempts) * random.uniform(0.8, 1.2)
        self._queue.fail(job, fault, due=None if last else self._clock() + timedelta(seconds=pause_s))
        logger.warning("%s stays an extract for now: %s", job.subject, fault)
        return pause_s

    def _interrupted(self, job: Job) -> bool:
        """Whether the generation under way is to end; asked with every token, and keeps the lease alive."""
        if self._closing.is_set() or self._users:
            return True
        now = self._clock()
        with suppress(StorageError):  # a disk that refuses lets nobody else take the job either
            if time.monotonic() - self._renewed > _LEASE_S / 3:
                self._renewed = time.monotonic()
                until = now + timedelta(seconds=_LEASE_S)
                self._queue.renew(job, until=until)
                if not self._queue.lead(self._owner, now=now, until=until):
                    return True
            if time.monotonic() - self._looked > _LOOK_ABROAD_S:
                self._looked = time.monotonic()
                self._wanted_elsewhere = self._queue.announced(self._owner, now)
        return self._wanted_elsewhere
