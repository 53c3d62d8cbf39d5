"""A small real orchestrator: it understands lines, keeps the state of work, runs tasks, and remembers all of it.

It is also the example of how to embed the library. Before each thing that it does it asks the memory for a context;
after, it records what came out. Changes of work are stored before the operation that tells of them; where a process
ends between the two, the next one tells of them in its place.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType, TracebackType

from orchestra_mem.build import utc_now
from orchestra_mem.core.language.fragments import UNSURE
from orchestra_mem.core.language.intents.correcting import takes_itself_back
from orchestra_mem.core.language.intents.parsing import ASKS, DESTRUCTIVE, Action, Intent, Parsed, parse
from orchestra_mem.core.language.mentions import Happening, Talk
from orchestra_mem.core.language.references.needs import need_of
from orchestra_mem.core.language.turns import corrected_to, is_aside, is_no, is_yes, says_yes
from orchestra_mem.errors import InvalidChangeError, NotFoundError
from orchestra_mem.hooks import Hooks
from orchestra_mem.manager import OrchestratorContextManager
from orchestra_mem.model_types import LanguageModel
from orchestra_mem.orchestrator.commands import Commands
from orchestra_mem.orchestrator.following import Last, following
from orchestra_mem.orchestrator.journal import LINE, Journal, line_record, said, undone
from orchestra_mem.orchestrator.questions import Questions
from orchestra_mem.orchestrator.replies import Effect, Outcome, Reply, command_of, put, reply_record, shown
from orchestra_mem.orchestrator.resolving import AT_HAND, Resolver, Unclear, chosen_from, named_alone
from orchestra_mem.orchestrator.tasks import TaskResult, TaskRunner, Work, shell_work
from orchestra_mem.orchestrator.understanding import Reader, by_rules, is_command
from orchestra_mem.ports import Clock
from orchestra_mem.types import Operation
from orchestra_mem.work_types import WorkEvent, WorkTracker


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """What waits for the next line: the intents that are still to be done, and what was asked.

    A yes is for what was named: for the items `meant`, or for taking back the operation `undoing`.
    """

    line: str
    intents: tuple[Intent, ...]
    phrase: str = ""
    candidates: tuple[int, ...] = ()
    for_yes: bool = False
    meant: tuple[int, ...] = ()
    undoing: Operation | None = None


class Orchestrator:
    """Understands lines and runs tasks over one memory. Safe to share between threads; lines come one at a time.

    Args:
        memory: where everything is remembered; it stays open when the orchestrator has ended.
        tracker: keeps the state of work; the memory's own by default.
        model: reads the lines that the rules do not understand and words answers; the memory's own by default, and
            where that has none, neither is done.
        agent: the name under which operations are recorded.
        confirm: whether `cancel` and `undo` ask before they are done.
        least_quality: a task's result below this is tried again, 0 to 1.
        clock: what "yesterday" is told from.
    """

    def __init__(
        self,
        memory: OrchestratorContextManager,
        *,
        tracker: WorkTracker | None = None,
        model: LanguageModel | None = None,
        agent: str = "orchestrator",
        confirm: bool = True,
        least_quality: float = 0.7,
        clock: Clock = utc_now,
    ) -> None:
        self.memory = memory
        self.tracker: WorkTracker = tracker or memory.state
        self.hooks = Hooks()
        self._confirm = confirm
        self._journal = Journal(memory, self.tracker, agent)
        model = model or memory.model
        self._reader = Reader(model, memory.foreground)
        self._commands = Commands(self.tracker)
        self._questions = Questions(memory, self.tracker, clock, model)
        self._tasks = TaskRunner(memory, self.tracker, self._journal, self.hooks, least_quality=least_quality)
        self._waiting: _Waiting | None = None
        self._last: Last | None = None
        self._lock = threading.RLock()
        self._journal.tell_of_changes()

    # Lines

    def execute(self, line: str) -> Reply:
        """Do or answer what a line says, and record it; nothing that a line may say raises.

        Raises:
            StorageError: it could not be stored.
        """
        with self._lock:
            text = next((said for said in self.hooks.call("pre_message", text=line) if isinstance(said, str)), line)
            if not text.strip():
                return Reply(line=line, outcome=Outcome.NOT_UNDERSTOOD, text="")
            self._journal.tell_of_changes()
            self.hooks.call("before_execution", kind=LINE, subject=text)
            try:
                reply = self._replied(text)
            except Exception as error:
                self.hooks.call("on_error", kind=LINE, subject=text, error=error)
                raise
            self.hooks.call("after_execution", kind=LINE, subject=text, result=reply_record(reply))
            self.hooks.call("post_message", text=text, answer=reply.text)
            return reply

    execute_nl_command = execute

    def _replied(self, line: str) -> Reply:
        waiting, self._waiting = self._waiting, None
        if self._last:
            self._last = replace(self._last, age=self._last.age + 1)
        self.memory.get_orchestrator_context(LINE)
        talk = self._journal.talk()
        ruled = by_rules(line, self.tracker)
        reply = self._gone_on(waiting, line, ruled, talk) if waiting else None
        reply = reply or self._of_last(line, ruled, talk)
        if reply is not None:
            return reply
        if takes_itself_back(line, parse):
            return self._journal.record(Reply(line=line, outcome=Outcome.ANSWERED, text="Left as it is."))
        parsed = self._reader.read(line, ruled)
        if parsed is not ruled and any(intent.action not in ASKS for intent in parsed.intents):
            if guess := self._guessed(line, parsed.intents, talk):
                return guess
            parsed = ruled
        lost = not parsed.understood or self._is_of_nothing(parsed.intents, talk)
        if lost and (freed := self._commands.freed_by(line)):
            return self._run(line, (freed,), talk, {})
        if not parsed.understood or not parsed.intents:
            why = f": {parsed.reason}" if parsed.reason else ""
            text = f"I did not understand that{why}. Try: {'; '.join(parsed.nearest) or 'help'}."
            spoken_of = shown(named_alone(line, self.tracker))
            return self._journal.record(Reply(line=line, outcome=Outcome.NOT_UNDERSTOOD, text=text, effects=spoken_of))
        return self._run(line, parsed.intents, talk, {})

    def _is_of_nothing(self, intents: Sequence[Intent], talk: Talk) -> bool:
        """Whether all that is said to be done is no work: "the printer is fixed"."""
        if len(intents) != 1 or intents[0].action not in (Action.FINISH, Action.RESUME, Action.UNBLOCK):
            return False
        try:
            Resolver(talk).many(intents[0].target)
        except Unclear as unclear:
            return not unclear.candidates
        except NotFoundError:
            return False
        return False

    def _guessed(self, line: str, intents: tuple[Intent, ...], talk: Talk) -> Reply | None:
        """Ask whether a model has read a line well, where all that it names is there."""
        for intent in intents:
            try:
                if intent.target and intent.action is not Action.ADD:
                    Resolver(talk).many(intent.target)
            except (Unclear, NotFoundError):
                return None
        self._waiting = _Waiting(line=line, intents=intents, for_yes=True)
        text = f"Did you mean: {'; '.join(map(command_of, intents))}? (yes or no)"
        return self._journal.record(Reply(line=line, outcome=Outcome.ASKED, text=text, intents=intents))

    def _gone_on(self, waiting: _Waiting, line: str, ruled: Parsed, talk: Talk) -> Reply | None:
        """Go on with what was asked, where the line answers it; None where it is a line of its own."""
        if is_no(line):
            return self._journal.record(Reply(line=line, outcome=Outcome.ANSWERED, text="Left as it is."))
        if waiting.for_yes:
            agreed = is_yes(line) or (says_yes(line) and not is_command(line, ruled))
            return self._run(waiting.line, waiting.intents, talk, {}, confirmed=waiting) if agreed else None
        asks = line.rstrip().endswith("?")
        if asks or (is_command(line, ruled) and not self._is_title(line, waiting.candidates)):
            return None
        chosen = chosen_from(corrected_to(line) or line, waiting.candidates, talk)
        both = f"{waiting.line} ({line.strip()})"
        return self._run(both, waiting.intents, talk, {waiting.phrase: chosen}) if chosen else None

    def _of_last(self, line: str, ruled: Parsed, talk: Talk) -> Reply | None:
        """Do what a line says by what was done last: the same of something else, or something else in its place."""
        last = self._last
        meant = following(line, ruled if is_command(line, ruled) else None, last, talk, self.tracker) if last else None
        if meant is None and is_aside(line):
            text = "Nothing was changed; `undo` takes back what was done last."
            return self._journal.record(Reply(line=line, outcome=Outcome.ANSWERED, text=text))
        if meant is None or last is None:
            return None
        if meant.takes_back:
            change = self._journal.last_change()
            if change is None:
                return None
            try:
                back = self._undone(Reply(line=line, outcome=Outcome.DONE, text="", intents=(last.intent,)), change)
            except (InvalidChangeError, NotFoundError):  # something else has been made of it since
                return None
            self._last = None
            if not meant.intents:
                return back
        return self._run(line, meant.intents, talk, meant.chosen)

    def _is_title(self, line: str, candidates: Sequence[int]) -> bool:
        said = line.strip(" .!\t\r\n").casefold()
        return any(self.tracker.item(each).title.casefold() == said for each in candidates)

    def _run(
        self,
        line: str,
        intents: Sequence[Intent],
        talk: Talk,
        chosen: dict[str, tuple[int, ...]],
        *,
        confirmed: _Waiting | None = None,
    ) -> Reply:
        """Do the intents one after the other, each whole or not at all; where one has to ask, the rest waits."""
        replies: list[Reply] = []
        for place, intent in enumerate(intents):
            if confirmed and confirmed.meant:
                chosen = {intent.target or AT_HAND: confirmed.meant}
            reply = self._step(line, intent, Resolver(talk, chosen), confirmed)
            replies.append(reply)
            if reply.outcome is Outcome.ASKED and self._waiting is not None:
                self._waiting = replace(self._waiting, intents=tuple(intents[place:]))
            if reply.outcome in (Outcome.ASKED, Outcome.REFUSED, Outcome.ENDED):
                break
            # A phrase that comes again means what it meant before: "start the other one and give it to Ida".
            done = tuple(item for effect in reply.effects for item in effect.items)
            same = reply.outcome is Outcome.DONE and intent.action not in (Action.CREATE, Action.ADD, Action.UNDO)
            chosen = {intent.target: done} if same and intent.target and done else {}
            talk, confirmed = self._journal.talk(), None
        return replace(
            replies[-1],
            text="\n".join(reply.text for reply in replies),
            intents=tuple(intents),
            effects=tuple(effect for reply in replies for effect in reply.effects),
        )

    def _step(self, line: str, intent: Intent, resolver: Resolver, confirmed: _Waiting | None) -> Reply:
        """Do or answer one intent, and record it."""
        reply = Reply(line=line, outcome=Outcome.DONE, text="", intents=(intent,))
        try:
            if intent.action is Action.QUIT:
                return replace(reply, outcome=Outcome.ENDED, text="Until next time.")
            goes_on = intent.action is Action.RESUME and not self._commands.takes_up(intent, resolver)
            if intent.action in ASKS or goes_on:
                answered = self._questions.answer(intent, resolver, line)
                answer = replace(reply, outcome=Outcome.ANSWERED, text=answered.text, effects=answered.effects)
                return self._journal.record(answer)
            unsure = intent.sure <= UNSURE or (intent.action in DESTRUCTIVE and self._confirm)
            if unsure and not confirmed:
                return self._asked_first(reply, intent, resolver)
            if intent.action is Action.UNDO:
                return self._undone(reply, confirmed.undoing if confirmed else self._journal.last_change())
            changes: list[WorkEvent]
            with self.tracker.together() as changes:
                done = self._commands.do(intent, resolver)
            text = "; ".join(effect.text for effect in done.effects)
            reply = replace(reply, text=text, effects=tuple(done.effects))
            self._last = Last(intent=intent, items=tuple(item for effect in done.effects for item in effect.items))
            return self._journal.record(reply, changes, kind=done.recorded_as or LINE, data=done.data)
        except Unclear as unclear:
            if unclear.candidates:
                self._waiting = _Waiting(
                    line=line, intents=(intent,), phrase=unclear.phrase, candidates=unclear.candidates
                )
            return self._journal.record(
                replace(reply, outcome=Outcome.ASKED, text=unclear.question, effects=shown(unclear.candidates))
            )
        except (InvalidChangeError, NotFoundError) as error:
            spoken_of = shown(resolver.named(intent.target))
            return self._journal.record(replace(reply, outcome=Outcome.REFUSED, text=f"{error}.", effects=spoken_of))

    def _asked_first(self, reply: Reply, intent: Intent, resolver: Resolver) -> Reply:
        """Ask before something is taken away."""
        last = self._journal.last_change() if intent.action is Action.UNDO else None
        if intent.action is Action.UNDO and last is None:
            return self._nothing_to_undo(reply)
        items = [] if last else resolver.many(intent.target, need_of(intent))
        what = f'undo "{said(last)}"' if last else f"{put(intent)} {', '.join(item.name for item in items)}"
        meant = tuple(item.id for item in items)
        self._waiting = _Waiting(line=reply.line, intents=(intent,), for_yes=True, meant=meant, undoing=last)
        return self._journal.record(replace(reply, outcome=Outcome.ASKED, text=f"Really {what}? (yes or no)"))

    def _undone(self, reply: Reply, last: Operation | None) -> Reply:
        if last is None:
            return self._nothing_to_undo(reply)
        with self.tracker.together() as changes:
            items = self.tracker.undo(last.id)
        text = f'Took back "{said(last)}": {", ".join(item.name for item in items)}'
        effect = Effect(happening=Happening.CHANGED, items=tuple(item.id for item in items), text=text)
        reply = replace(reply, text=text, effects=(effect,))
        return self._journal.record(reply, changes, data={**line_record(reply), **undone(last)})

    def _nothing_to_undo(self, reply: Reply) -> Reply:
        return self._journal.record(replace(reply, outcome=Outcome.REFUSED, text="There is nothing to undo."))

    # Tasks

    def execute_task(
        self,
        task: int,
        work: Work | str,
        *,
        max_iterations: int = 1,
        timeout_s: float | None = None,
        folder: Path | None = None,
        tokens_used: int | None = None,
    ) -> TaskResult:
        """Run a task until its result is good enough; each try is recorded, and the item's status follows.

        Args:
            task: the item's id.
            work: a callable of the host's, or a shell command.
            max_iterations: how often it is tried at most.
            timeout_s, folder: of a shell command.
            tokens_used: of the window, as the host reports them for each try.

        Raises:
            InvalidChangeError: the item cannot be started as it stands.
            NotFoundError: there is no such item.
            StorageError: it could not be stored.
        """
        runs = shell_work(work, folder=folder, timeout_s=timeout_s) if isinstance(work, str) else work
        return self._tasks.run(task, runs, max_iterations=max(1, max_iterations), tokens_used=tokens_used)

    # Ending

    def shutdown(self, graceful: bool = True) -> Path | None:
        """End: with `graceful` the session is flushed, else it goes on with the next start; safe to call twice.

        Returns:
            Where the session's document lies now; None where there is none.
        """
        with self._lock:
            self._waiting = None
            if not graceful:
                return None
            self._journal.tell_of_changes()
            return self.memory.flush_session()

    def end_on_signals(self) -> None:
        """Have SIGTERM end the process like Ctrl-C does, so that `with` flushes the session. For the main thread."""

        def ended(number: int, frame: FrameType | None) -> None:
            raise SystemExit(128 + number)

        signal.signal(signal.SIGTERM, ended)

    def __enter__(self) -> Orchestrator:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Flush the session, however it came to its end."""
        self.shutdown()
