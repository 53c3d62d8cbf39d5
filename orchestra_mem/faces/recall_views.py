"""Terminal views of search hits, their originals, summaries, catalog items and the audit trail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from orchestra_mem.catalog_types import AuditEntry, CatalogStatistics, InjectedItem, ItemStatus, MemoryItem
from orchestra_mem.compression.service import SummaryHistory
from orchestra_mem.core.documents.entries import plain_text
from orchestra_mem.core.text import visible
from orchestra_mem.faces.records import counted
from orchestra_mem.faces.views import clipped, event_words, short_time, table_of
from orchestra_mem.job_types import JobState
from orchestra_mem.memory.recall import Expansion
from orchestra_mem.search_types import Hit, named_in_short
from orchestra_mem.serialize import readable_json
from orchestra_mem.types import Summary
from orchestra_mem.work_types import WorkKind

_PASSAGE_CHARS = 280


def hits_view(hits: Sequence[Hit], lines: Sequence[int], *, explain: bool) -> Iterator[RenderableType]:
    """Show the result of `search`; `lines`: Line number of each hit in its document, 0 for a hit without document."""
    if not hits:
        yield Text("nothing found")
    for number, (hit, line) in enumerate(zip(hits, lines, strict=True), 1):
        if hit.perhaps and (number == 1 or not hits[number - 2].perhaps):
            yield Text("Perhaps:" if number > 1 else "No certain hits; perhaps:")
        chunk = hit.chunk
        head = Text(f"{number:>3}  ", style="dim")
        if projects := getattr(hit, "projects", ()):  # if several projects were searched
            head.append(f"{visible(named_in_short(projects))}  ")
        head.append(f"{chunk.source}:{line}" if line else chunk.source, style="bold")
        if chunk.heading and chunk.kind not in set(WorkKind):
            head.append("  ").append_text(clipped(" > ".join(chunk.heading)))
        elif chunk.title:
            head.append("  ").append_text(clipped(chunk.title))
        about = f"item {chunk.item}" if chunk.item is not None and chunk.kind not in set(WorkKind) else ""
        tail = filter(None, (chunk.kind, about, chunk.agent, short_time(chunk.time) if chunk.time else ""))
        head.append(f"  {', '.join(tail)}  {hit.likelihood:.0%}", style="dim")
        if hit.fate:
            head.append(f"  {hit.fate}", style="yellow")
        yield head
        text = visible(" ".join(chunk.text.split()))
        yield Text(f"     {text if len(text) <= _PASSAGE_CHARS else f'{text[:_PASSAGE_CHARS]} …'}")
        if explain:
            yield from (Text(f"     {line}", style="dim") for line in reasons_lines(hit))


def reasons_lines(hit: Hit) -> Iterator[str]:
    """Explain the rank of a hit, line by line."""
    reasons = hit.reasons
    yield "; ".join(
        f"{name} {'not found' if rank is None else f'rank {rank}'}, score {score:.3f}"
        for name, rank, score in (
            ("words:", reasons.keyword_rank, reasons.keyword_score),
            ("meaning:", reasons.dense_rank, reasons.dense_score),
        )
    )
    if reasons.identifiers:
        yield f"contains {', '.join(reasons.identifiers)}"
    yield "score: " + " + ".join(f"{value:.3f} {name}" for name, value in reasons.shares if value)
    if reasons.priors:
        yield "times " + ", ".join(f"{value:.3f} {name}" for name, value in reasons.priors)
    yield f"likelihood {hit.likelihood:.3f}{hit.doubt}"


def expansion_text(found: Expansion) -> str:
    """Format the result of `expand`: the surrounding text, then the recorded operations with their data as JSON."""
    lines = [*_place_lines(found), *_item_lines(found), *_neighbours(found)]
    if found.memory_item is not None:
        lines += memory_item_lines(found.memory_item)
    if found.summary is not None:
        summary = found.summary
        covered = "a section of a document" if summary.document else counted(summary.operation_count, "operation")
        lines += [
            f"S{summary.id}, {subject_of(summary)}: {covered}, "
            f"{summary.source_tokens:,} tokens summarised in {summary.tokens:,} ({summary.ratio:.0%})",
            *(f"| {line}" for line in summary.text.splitlines()), "",
        ]  # fmt: skip
    if found.fact is not None:
        fact = found.fact
        lines += [f"K{fact.id}: {fact.kind.value}, {fact.status.value}: {fact.text}", ""]
    for operation in found.operations:
        agent = f" by {operation.agent}" if operation.agent else ""
        lines += [
            f"op{operation.id} {short_time(operation.timestamp)} {operation.type}{agent} ({operation.tokens:,} tokens)",
            readable_json(operation.data),
        ]
    return "".join(f"{line}\n" for line in lines)


def _place_lines(found: Expansion) -> Iterator[str]:
    if (place := found.place) is not None:
        yield f"{found.reference}  {' > '.join(place.passage.heading)}".rstrip()
        for passage in (*place.before, place.passage, *place.behind):
            mark = ">" if passage is place.passage else " "
            for number, line in enumerate(visible(passage.text).split("\n"), passage.line):
                yield f"{mark} {number:>5}  {line}"
        yield ""


def _item_lines(found: Expansion) -> Iterator[str]:
    if (item := found.item) is not None:
        yield f"{item.name}: {item.status.value}"
        yield from filter(None, (item.description, *item.acceptance))
        yield from (visible(f"  {short_time(event.time)} {event_words(event)}") for event in found.events)
        yield ""


def memory_item_lines(item: MemoryItem) -> Iterator[str]:
    """Show a catalog item in full."""
    about = f"M{item.number}  {item.id}  {item.type} of {item.ci_source}, priority {item.priority}"
    yield visible(f"{about}, {'' if item.status is ItemStatus.LIVE else f'{item.status}, '}{item.tokens:,} tokens")
    until = f"until {short_time(item.expires)}" if item.expires else "forever"
    again = f", {item.said:,} times" if item.said > 1 else ""
    yield f"said {short_time(item.timestamp)} by {item.author}{again}, kept {until}"
    for name, values in (("tags", item.tags), ("refers to", item.references)):
        if values:
            yield visible(f"{name}: {', '.join(values)}")
    if item.superseded_by:
        yield f"superseded by {item.superseded_by}"
    if item.summary != item.content:
        made = f" ({item.summary_method})" if item.summary_method else ""
        yield visible(f"in short{made}: {item.summary}")
    yield ""
    yield from visible(item.content).split("\n")


def _neighbours(found: Expansion) -> Iterator[str]:
    if found.around:
        asked = found.operations[0]
        for operation in sorted((*found.around, asked), key=lambda each: each.id):
            text = visible(" ".join(plain_text(operation).split()))
            said = text if len(text) <= _PASSAGE_CHARS else f"{text[:_PASSAGE_CHARS]} …"
            mark, when = ">" if operation.id == asked.id else " ", short_time(operation.timestamp)
            yield f"{mark} op{operation.id} {when} {operation.type}: {said}"
        yield ""


def subject_of(summary: Summary) -> str:
    """Name the subject of a summary: a section of a document, a level, or a complete session."""
    return summary.document or (f"level {summary.level}" if summary.level else f"session {summary.session[:8]}")


def losses_view(summaries: Sequence[Summary]) -> Iterator[RenderableType]:
    """Show the result of `losses`."""

    def row(each: Summary) -> Sequence[str | Text]:
        return [
            f"S{each.id}", subject_of(each), "" if each.document else f"{each.first_operation}-{each.last_operation}",
            f"{each.source_tokens:,}", f"{each.tokens:,}", f"{each.ratio:.0%}", str(len(each.must_keeps)),
            f"{len(each.dropped)}: {', '.join(each.dropped)}" if each.dropped else "none",
        ]  # fmt: skip

    return table_of(
        summaries, row, "|of|operations|tokens>|to>|ratio>|kept>|dropped identifiers",
        empty="no summaries yet", hint="orchestra-mem expand S… shows the originals",
    )  # fmt: skip


def summaries_view(stories: Sequence[SummaryHistory]) -> Iterator[RenderableType]:
    """Show the result of `summaries`."""

    def row(story: SummaryHistory) -> Sequence[str | Text]:
        each = story.summary
        name = f"S{each.id}" if each.level else f"S{each.id} {subject_of(each)}"
        counts = f"{each.ratio:.0%}", str(len(each.put_back)), str(len(each.dropped))
        return name, *counts, each.method, _verdict(story)

    return table_of(
        stories, row, "|ratio>|put back>|lost>|method|verdict", empty="no summaries yet",
        hint="orchestra-mem losses lists what was lost, orchestra-mem expand S… shows the originals",
    )  # fmt: skip


def _verdict(story: SummaryHistory) -> str:
    """Describe how the model's attempt ended, or that it is still pending."""
    if story.draft is not None:
        return f"{story.draft.verdict}; used at next refresh"
    if story.job is not None and story.job.state is not JobState.FAILED:
        tried = f", {story.job.attempts} tries failed: {story.job.error}" if story.job.attempts else ""
        return "in progress" if story.job.state is JobState.RUNNING else f"waiting for the model{tried}"
    if story.trial is not None:
        return f"{story.trial.verdict}{': ' if story.trial.fault else ''}{story.trial.fault}"
    return story.summary.verdict or "no model was asked"


def memory_items_view(items: Sequence[MemoryItem]) -> Iterator[RenderableType]:
    """Show the result of `catalog list`."""
    has_hidden = any(item.status is not ItemStatus.LIVE for item in items)

    def row(item: MemoryItem) -> Sequence[str | Text]:
        status = [item.status.value] if has_hidden else []
        until = short_time(item.expires)[:-3] if item.expires else "forever"
        return [f"M{item.number}", item.type, item.ci_source, str(item.priority), until, *status, item.summary]

    columns = f"|type|of|prio>|kept until|{'status|' if has_hidden else ''}summary"
    return table_of(items, row, columns, empty="no items", hint="orchestra-mem catalog show M… shows a complete item")


def catalog_stats_view(found: Mapping[str, CatalogStatistics]) -> Iterator[RenderableType]:
    """Show the result of `catalog stats`."""

    def row(agent: str) -> Sequence[str | Text]:
        times = (found[agent].oldest_memory, found[agent].last_cleanup)
        told = (short_time(time)[:-3] if time else "" for time in times)
        return [agent, f"{found[agent].total_memories:,}", f"{found[agent].total_tokens:,}", *told]

    columns = "agent|items>|tokens>|oldest|cleaned up"
    return table_of(list(found), row, columns, empty="no items", wide=False)


def audit_view(found: Sequence[AuditEntry]) -> Iterator[RenderableType]:
    """Show the result of `audit`."""

    def row(entry: AuditEntry) -> Sequence[str | Text]:
        tokens = f"{entry.tokens:,} tokens" if entry.tokens else ""
        what = visible("; ".join(filter(None, (", ".join(entry.items), tokens, entry.detail))))
        told = Text(" ".join(what.split()), overflow="fold", no_wrap=False)
        return [short_time(entry.time), entry.agent or "(owner)", entry.call, entry.outcome, told]

    return table_of(found, row, "time|agent|call|outcome|what", empty="no entries")


def injections_view(found: Sequence[InjectedItem]) -> Iterator[RenderableType]:
    """Show the result of `audit injections`."""

    def row(each: InjectedItem) -> Sequence[str]:
        times = f"{each.times:,} of {each.messages:,}"
        figures = (times, f"{each.tokens:,}", f"{each.token_share:.0%}", f"{each.unused:,}")
        return [visible(each.agent), each.item, *figures, ", ".join(each.warnings)]

    return table_of(
        found, row, "agent|item|messages>|tokens>|share>|unused>|warnings", empty="no items were given to agents",
        hint="orchestra-mem catalog show … shows an item",
    )  # fmt: skip
