"""Commands for secrets in a memory that is there already: redact scan, redact apply."""

from __future__ import annotations

import os
from typing import Annotated

from orchestra_mem import build
from orchestra_mem.faces.asking import agreed
from orchestra_mem.faces.command import FAILED, CommandResult, Invocation, command, command_group, flag
from orchestra_mem.faces.records import counted

redact = command_group("redact", "Look after", help="Find secrets and take them out.")


@command(of=redact)
def scan(run: Invocation) -> CommandResult:
    """Tell where secrets stand, in the database and in the documents, and never which. Exits with 1 if there are any.

    Example: orchestra-mem redact scan
    """
    from orchestra_mem.doctor.secrets import find_secrets

    run.require_memory()
    found = find_secrets(run.project, build.load_settings(run.project, os.environ))
    lines = [f"{each.place}: {', '.join(f'{kind} ({n})' for kind, n in each.kinds.items())}\n" for each in found]
    text = "".join(lines) or "no secret was found\n"
    notes = ["`orchestra-mem redact apply` takes them out"] if found else []
    return CommandResult({"secrets": found}, text, exit_code=FAILED if found else 0, notes=notes)


@command(of=redact)
def apply(run: Invocation, yes: Annotated[bool, flag("--yes", "Do it without asking.")] = False) -> CommandResult:
    """Take all secrets out, of what was recorded and of documents, a person's lines too, for good. Asks first.

    Example: orchestra-mem redact apply --yes
    """
    from orchestra_mem.doctor.secrets import take_out

    run.require_memory()
    if not yes and not agreed(run, "Rewrite what was recorded, and what people wrote?"):
        return CommandResult({"texts": 0, "files": 0}, "nothing was rewritten\n", exit_code=FAILED)
    done = take_out(run.project, build.load_settings(run.project, os.environ))
    rewritten = f"{counted(done.texts, 'text')} of the database and {counted(done.files, 'file')}"
    return CommandResult(done, f"rewritten: {rewritten}\n")
