"""A small working orchestrator: understands lines, keeps the state of work, runs tasks, and records everything.

It is also an example of embedding the library: it requests a context before each line or task attempt, and records the
result as an operation afterwards. Work items are changed before that operation is recorded. If the process dies in
between, the next process records the changes (`Journal.record_unattributed_changes`).
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType, TracebackType

from orchestra_mem.build import language_model, utc_now
from orchestra_mem.compression.timeouts import ModelWithTimeout
from orchestra_mem.design_names import RejectsDesignArguments
from orchestra_mem.errors import InvalidChangeError, NotFoundError
from orchestra_mem.hooks import Hooks
from orchestra_mem.memory.agent_view import InjectedMessage, first_injection
from orchestra_mem.memory.manager import OrchestratorContextManager
from orchestra_mem.model_types import AnyModel
from orchestra_mem.orchestrator import resolving
from orchestra_mem.orchestrator.answers import Answers
from orchestra_mem.orchestrator.commands import Commands
from orchestra_mem.orchestrator.intents import ASKS, DESTRUCTIVE, Action, Intent, Parsed
from orchestra_mem.orchestrator.intents.classifier import classifier
from orchestra_mem.orchestrator.intents.grammar import as_command
from orchestra_mem.orchestrator.intents.languages import is_foreign
from orchestra_mem.orchestrator.intents.reading import read_line
from orchestra_mem.orchestrator.journal import LINE, PART_OF, UNDONE, CatalogHooks, Journal, line_record, said
from orchestra_mem.orchestrator.resolving import Resolver, Unclear
from orchestra_mem.orchestrator.talk import (
    Effect,
    Happening,
    Outcome,
    Reply,
    Talk,
    expected_target,
    reply_record,
    shown,
)
from orchestra_mem.orchestrator.tasks import TaskResult, TaskRunner, Work, shell_work
from orchestra_mem.ports import Clock
from orchestra_mem.types import Operation
from orchestra_mem.work_types import OPEN_STATUSES, WorkEvent, WorkFilter, WorkItem, WorkTracker

_MOST_TITLES = 300
_OF_FACTS = re.compile(r"(?i)\b(?:rules?|decisions?|decided?|learn(?:ed|t)?)\b")
_MOST_NAMED = 50
_LONGEST = 2_000
_ANSWER_TIMEOUT_S = 30.0
_ASKS = re.compile(
    r"\s*(?!(?:please|(?:can|could|would|will) (?:you|we))\b)"
    r"(?:.*[?\uff1f]|(?:who|what|when|where|why|is|are|how)s?\b.*)\s*",
    re.IGNORECASE | re.DOTALL,
)
_SURE_OF_QUESTION = 0.5  # questions at least this likely are answered without asking: an answer changes nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """A question for the next line: which of the readings `options` is meant, or which of the items `candidates`.

    `phrase` is the ambiguous or unknown phrase. A yes confirms the items `meant`, or the undo of the operations
    `undoing`; with `first_only` it confirms only the first intent, and the remaining intents are still unconfirmed.
    """

    line: str
    options: tuple[tuple[Intent, ...], ...]
    phrase: str = ""
    candidates: tuple[int, ...] = ()
    meant: tuple[int, ...] = ()
    undoing: tuple[Operation, ...] = ()
    first_only: bool = False


class Orchestrator(RejectsDesignArguments, use="Orchestrator(open_memory(project, config=config))"):
    """Understands lines and runs tasks on one memory. Safe to share between threads; lines are processed one at a time.

    Args:
        memory: Memory that records everything. It stays open after the orchestrator has ended.
        tracker: Keeps the state of work; by default the memory's tracker.
        model: Formulates answers to "why"; by default the memory's model. Without one, they only quote the memory.
        agent: Name under which operations are recorded.
        confirm: Whether `cancel` and `undo` ask first; the undo of a change of an earlier session or hour always does.
        least_quality: Minimum quality of a task's result, 0 to 1; below it the task is retried, and finally fails.
        clock: Returns the present time, to resolve "yesterday" and to tell an old change from a new one.
    """

    def __init__(
        self, memory: OrchestratorContextManager, *, tracker: WorkTracker | None = None, model: AnyModel | None = None,
        agent: str = "orchestrator", confirm: bool = True, least_quality: float = 0.7, clock: Clock = utc_now,
    ) -> None:  # fmt: skip
        self.memory = self.orch_context = memory
        self.tracker: WorkTracker = tracker or memory.state
        self.hooks = Hooks(memory.events.note_failure)
        self._confirm, self._clock = confirm, clock
        self._journal = Journal(memory, self.tracker, agent)
        used = memory.model if model is None else language_model(model)
        worder = ModelWithTimeout(used, timeout_s=_ANSWER_TIMEOUT_S) if used else None
        self._commands = Commands(self.tracker)
        self._answers = Answers(memory, self.tracker, clock, worder)
        self._tasks = TaskRunner(journal=self._journal, hooks=self.hooks, least_quality=least_quality)
        self._waiting: _Waiting | None = None
        self._line = 0  # first operation of the present line, 0 before it
        self._lock = threading.RLock()
        self._journal.record_unattributed_changes()
        if memory.has_catalog_hooks:
            self.hooks.add(CatalogHooks(memory, self.tracker))

    # Lines

    def execute(self, line: str, *, use_memory: bool = True) -> Reply:
        """Execute or answer a line, and record it. No line raises an error because of its content.

        Commands that the grammar reads completely are executed, questions are answered, and anything else is confirmed
        first. Without `use_memory` no context is assembled and the hooks inject no catalog items.

        Raises:
            StorageError: A write failed.
        """
        with self._lock:
            who = {"agent": self._journal.agent, "use_memory": use_memory}
            heard = self.hooks.call("pre_message", text=line, **who)
            self._answers.injection = first_injection(heard)
            texts = (each for each in heard if isinstance(each, str) and not isinstance(each, InjectedMessage))
            text = next(texts, line)
            if not text.strip():
                return Reply(line=line, outcome=Outcome.NOT_UNDERSTOOD, text="")
            self._journal.record_unattributed_changes()
            self.hooks.call("before_execution", kind=LINE, subject=text, **who)
            try:
                reply = replace(self._replied(text, use_memory), injection=self._answers.injection)
            except Exception as error:
                self.hooks.call("on_error", kind=LINE, subject=text, error=error)
                raise
            result = reply_record(reply)
            self.hooks.call("after_execution", kind=LINE, subject=text, result=result)
            self.hooks.call("post_message", text=text, answer=reply.text, result=result, **who)
            return reply

    def execute_nl_command(self, line: str, *design: object, use_memory: bool = True, **more: object) -> Reply:
        """Execute a line as typed; see `execute`.

        Raises:
            TypeError: The arguments are the source design's: a parsed intent and a project.
        """
        if design or more or not isinstance(line, str):
            raise TypeError("execute_nl_command takes no parsed intent and no project: pass the line as typed")
        return self.execute(line, use_memory=use_memory)

    def _replied(self, line: str, use_memory: bool) -> Reply:
        waiting, self._waiting = self._waiting, None
        if use_memory:
            self.memory.get_orchestrator_context(LINE)
        talk = self._journal.talk(self._clock())
        if waiting and (reply := self._gone_on(waiting, line, talk)):
            return replace(reply, answers=True)
        self._line = 0
        if resolving.is_no(line):
            answer = "Nothing was changed." if waiting else "Nothing was changed; `undo` reverts the last change."
            reply = Reply(line=line, outcome=Outcome.ANSWERED, text=answer, answers=waiting is not None)
            return self._journal.record(reply)
        nothing = Parsed(intents=(), understood=False)
        parsed = nothing if resolving.is_yes(line) else self._read(line)
        if parsed.understood and parsed.intents:
            return self._run(line, parsed.intents, talk, {})
        if len(line) > _LONGEST or not classifier().vocabulary.knows(line) or is_foreign(line):
            parsed = nothing
        if parsed.intents and all(_is_answerable(intent, talk) for intent in parsed.intents):
            return self._run(line, parsed.intents, talk, {})
        if asked := self._question_in(line, talk):
            find = Intent(action=Action.FIND, value=line.strip(), sure=0)
            return self._run(line, (asked, find) if self._answers.knows(line) else (asked,), talk, {})
        return self._suggested(line, parsed, talk)

    def _question_in(self, line: str, talk: Talk) -> Intent | None:
        """Read a line as a question about the item or person that it names; None if it asks or names nothing."""
        if not _ASKS.fullmatch(line):
            return None
        if named := resolving.resolve_line(line, talk).items:
            return Intent(action=Action.STATUS, target=", ".join(f"#{item.id}" for item in named))
        if not resolving.persons_in(line, self.tracker):
            return None
        return Intent(action=Action.RECENT if _OF_FACTS.search(line) else Action.LIST, sure=0)

    def _read(self, line: str) -> Parsed:
        items = self.tracker.items(WorkFilter(statuses=OPEN_STATUSES, limit=_MOST_TITLES))
        return read_line(line, [item.title for item in items])

    def _suggested(self, line: str, parsed: Parsed, talk: Talk) -> Reply:
        """Note a line that only states what holds; else offer its possible meanings, or search for what it asks."""
        parsed = resolving.sensible(line, parsed)
        offered = resolving.suggestions(line, parsed, talk)
        names_items, asks = bool(resolving.resolve_line(line, talk).items), _ASKS.fullmatch(line) is not None
        if not asks and resolving.states_what_holds(line, self._clock()):
            note = (Intent(action=Action.NOTE, value=line.strip()),)
            is_telling = not parsed.intents or resolving.only_tells(next(iter(offered.values()), ()))
            if is_telling and not names_items:
                return self._run(line, note, talk, {})
            offered = {key: each for key, each in offered.items() if not resolving.only_tells(each)}
            offered[as_command(note[0])] = note
        if not offered:
            if asks and self._answers.knows(line):
                return self._run(line, [Intent(action=Action.FIND, value=line.strip())], talk, {})
            text = f"I did not understand that. Try: {'; '.join(parsed.nearest) or 'help'}."
            reply = Reply(line=line, outcome=Outcome.NOT_UNDERSTOOD, text=text)
            return self._journal.record(reply, data=line_record(reply) | ({"settled": True} if names_items else {}))
        (first, *others), options = offered, tuple(offered.values())
        self._waiting = _Waiting(line=line, options=options, undoing=self._journal.change_just_made(self._clock()))
        listed = "".join(f"\n  {number}: {other}" for number, other in enumerate(others, 2))
        text = f"Did you mean: {first}? (yes/no{', or a number' if others else ''}){listed}"
        asked = Reply(line=line, outcome=Outcome.ASKED, text=text, intents=options[0], options=options)
        return self._journal.record(asked)

    def _gone_on(self, waiting: _Waiting, line: str, talk: Talk) -> Reply | None:
        """Continue with a pending question if the line answers it; None if the line is a new command."""
        if resolving.is_no(line):
            return None
        if not (waiting.candidates or waiting.phrase):
            chosen = resolving.choice_in(line, len(waiting.options))
            return None if chosen is None else self._run(waiting.line, waiting.options[chosen], talk, {}, waiting)
        if line.rstrip().endswith("?") or self._read(line).understood:
            return None
        items, both = resolving.chosen_from(line, waiting.candidates, talk), f"{waiting.line} ({line.strip()})"
        return self._run(both, waiting.options[0], talk, {waiting.phrase: items}) if items else None

    def _run(
        self, line: str, intents: Sequence[Intent], talk: Talk, chosen: Mapping[str, Sequence[int]],
        agreed: _Waiting | None = None,
    ) -> Reply:  # fmt: skip
        """Execute intents in order, each atomically; an intent that has to ask, and all later ones, wait."""
        replies: list[Reply] = []
        for place, intent in enumerate(intents):
            if agreed and agreed.meant:
                chosen = {intent.target: agreed.meant}
            reply = self._step(line, intent, Resolver(talk, chosen), agreed)
            agreed = None if agreed and agreed.first_only else agreed
            replies.append(reply)
            if reply.outcome is Outcome.ASKED and self._waiting is not None:
                self._waiting = replace(self._waiting, options=(tuple(intents[place:]),))
            self._line = self._line or reply.operation
            if reply.outcome in (Outcome.ASKED, Outcome.REFUSED, Outcome.ENDED):
                break
            # A phrase that is repeated keeps its meaning, even though the change has moved the focus.
            done = tuple(item for effect in reply.effects for item in effect.items)
            same = reply.outcome is Outcome.DONE and intent.action not in (Action.CREATE, Action.ADD, Action.UNDO)
            chosen = {intent.target: done} if same and intent.target and done else {}
            talk = self._journal.talk(self._clock())
        effects = tuple(effect for reply in replies for effect in reply.effects)
        text = "\n".join(reply.text for reply in replies if reply.text)
        return replace(replies[-1], text=text, intents=tuple(intents), effects=effects)

    def _step(self, line: str, intent: Intent, resolver: Resolver, agreed: _Waiting | None) -> Reply:
        reply = Reply(line=line, outcome=Outcome.DONE, text="", intents=(intent,))
        takes_back = intent.action is Action.UNDO
        agreed = None if takes_back and agreed and not agreed.undoing else agreed
        last = (agreed.undoing if agreed else self._journal.last_change()) if takes_back else ()
        old = self._journal.old_date(last[0], self._clock()) if last else ""
        try:
            if intent.action is Action.QUIT:
                return replace(reply, outcome=Outcome.ENDED, text="Until next time.")
            goes_on = intent.action is Action.RESUME and not self._commands.resume_changes_items(intent, resolver)
            if intent.action in ASKS or goes_on:
                resolving.check_period(intent, line, self._clock())
                answer = self._answers.actions[intent.action](intent, resolver, line)
                answered = replace(reply, outcome=Outcome.ANSWERED, text=answer.text, effects=answer.effects)
                return self._journal.record(answered)
            if takes_back and not agreed and (text := self._journal.why_not_undone(last)):
                return self._journal.record(replace(reply, outcome=Outcome.REFUSED, text=text))
            asks = intent.action in DESTRUCTIVE or self._commands.reopens(intent, resolver)
            if asks and (self._confirm or old) and not agreed:
                return self._asked_first(reply, intent, resolver, last, old)
            return self._undone(reply, last) if last else self._done(reply, intent, resolver)
        except Unclear as unclear:
            candidates = unclear.candidates
            if candidates or unclear.phrase:
                self._waiting = _Waiting(line=line, options=((intent,),), phrase=unclear.phrase, candidates=candidates)
            asked = replace(reply, outcome=Outcome.ASKED, text=unclear.question, effects=shown(candidates))
            return self._journal.record(asked)
        except (InvalidChangeError, NotFoundError) as error:
            spoken_of = shown(resolver.named(intent.target))
            return self._journal.record(replace(reply, outcome=Outcome.REFUSED, text=f"{error}.", effects=spoken_of))

    def _done(self, reply: Reply, intent: Intent, resolver: Resolver) -> Reply:
        changes: list[WorkEvent]
        with self.tracker.together() as changes:
            done = self._commands.actions[intent.action](intent, resolver)
        reply = replace(reply, text=done.text, effects=done.effects)
        data = {
            **(line_record(reply) if done.data is None else done.data),
            **({PART_OF: self._line} if self._line else {}),
        }
        return self._journal.record(reply, changes, kind=done.kind or LINE, data=data)

    def _asked_first(
        self, reply: Reply, intent: Intent, resolver: Resolver, last: tuple[Operation, ...], old: str
    ) -> Reply:
        """Ask before items are cancelled or reopened, or the `last` line undone; `old`: its date, if it is old."""
        items = [] if last else resolver.many(intent.target, expected_target(intent))
        verb = "reopen" if intent.action is Action.STOP else intent.action
        what = f'undo "{said(last[0])}"{old and f" of {old}"}' if last else f"{verb} {_names(items)}"
        meant, options = tuple(item.id for item in items), ((intent,),)
        self._waiting = _Waiting(line=reply.line, options=options, meant=meant, undoing=last, first_only=True)
        return self._journal.record(replace(reply, outcome=Outcome.ASKED, text=f"Really {what}? (yes or no)"))

    def _undone(self, reply: Reply, last: Sequence[Operation]) -> Reply:
        with self.tracker.together() as changes:
            items = {item.id: item for operation in last for item in self.tracker.undo(operation.id)}
        text = f'Undid "{said(last[0])}": {_names([*items.values()])}'
        effect = Effect(happening=Happening.CHANGED, items=tuple(items), text=text)
        reply = replace(reply, text=text, effects=(effect,))
        first = last[-1].data.get(PART_OF, last[-1].id) if isinstance(last[-1].data, dict) else last[-1].id
        return self._journal.record(reply, changes, data={**line_record(reply), UNDONE: first})

    # Tasks

    def execute_task(
        self, task: int, work: Work | str, *, max_iterations: int = 1, timeout_s: float | None = None,
        folder: Path | None = None, tokens_used: int | None = None, use_memory: bool = True,
    ) -> TaskResult:  # fmt: skip
        """Run a task until its result is good enough; record each attempt and update the item's status.

        Args:
            task: Id of the item.
            work: Callable, or shell command.
            max_iterations: Maximum number of attempts.
            timeout_s, folder: Time limit of each attempt and working directory, for a shell command.
            tokens_used: Tokens of the model's window that each attempt uses, as the caller counts them.
            use_memory: Whether the work receives a context; otherwise the context is empty.

        Raises:
            InvalidChangeError: The item's state does not allow it to start.
            NotFoundError: There is no such item.
            StorageError: A write failed.
        """
        runs = shell_work(work, folder=folder, timeout_s=timeout_s) if isinstance(work, str) else work
        return self._tasks.run(
            task, runs, max_iterations=max(1, max_iterations), tokens_used=tokens_used, use_memory=use_memory
        )

    # Ending

    def shutdown(self, graceful: bool = True) -> Path | None:
        """Flush the session; with `graceful=False`, leave it open for the next start to continue. Safe to call twice.

        Returns:
            Path of the flushed session's document; None if no session was flushed.
        """
        with self._lock:
            self._waiting = None
            if not graceful:
                return None
            self._journal.record_unattributed_changes()
            return self.memory.flush_session()

    def end_on_signals(self) -> None:
        """Make SIGTERM raise `SystemExit`, so that `with` flushes the session. Call this from the main thread."""

        def ended(number: int, frame: FrameType | None) -> None:
            raise SystemExit(128 + number)

        signal.signal(signal.SIGTERM, ended)

    def __enter__(self) -> Orchestrator:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Flush the session, also after an error."""
        self.shutdown()


def _names(items: Sequence[WorkItem]) -> str:
    """List the first `_MOST_NAMED` items by name, and count the rest."""
    more = [f"{len(items) - _MOST_NAMED:,} more"] if len(items) > _MOST_NAMED else []
    return ", ".join([*(item.name for item in items[:_MOST_NAMED]), *more])


def _is_answerable(intent: Intent, talk: Talk) -> bool:
    """Check whether an intent is probably a question about something that exists."""
    is_question = intent.action in ASKS - {Action.QUIT} and intent.sure >= _SURE_OF_QUESTION
    is_free = not intent.target or intent.action in (Action.WHY, Action.FIND)
    return is_question and (is_free or bool(resolving.resolve_text(intent.target, talk).candidates))
