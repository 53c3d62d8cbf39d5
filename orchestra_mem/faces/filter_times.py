"""Times as people and programs give them to the interfaces: all forms, in all languages of the shell."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from orchestra_mem.errors import InvalidTimeError

_MOST_CHARS = 200


def filter_time(given: object, now: datetime | None = None, zone: tzinfo | None = None) -> datetime:
    """Parse a time as `core.periods.parse_time` does; a period may be named in any language of the shell.

    Args:
        given: The text; of a longer one, the first 200 characters.
        now: The present, by default that of this machine's clock.
        zone: Time zone of times without an offset and of periods, None for this machine's.

    Raises:
        InvalidTimeError: The text is no time, or one out of range.
    """
    from orchestra_mem.core.periods import parse_time  # its patterns take milliseconds to compile

    # A number is no time: it could be a year, or seconds since 1970.
    given = given[:_MOST_CHARS] if isinstance(given, str) else f"<{given}>"
    now = now or datetime.now(UTC)
    try:
        return parse_time(given, now, zone)
    except InvalidTimeError:
        from orchestra_mem.orchestrator.intents.languages import period_in_english  # only now: slow to load

        if english := period_in_english(given):
            return parse_time(english, now, zone)
        raise
