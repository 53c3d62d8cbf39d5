"""Run the command line: the installed program, and `python -m orchestra_mem`."""

from __future__ import annotations

import gc


def main() -> None:
    """Load the command line and run it. What is loaded stays, and is not gone through for garbage again and again."""
    gc.set_threshold(200_000)
    from orchestra_mem.faces import cli

    cli.main()


if __name__ == "__main__":
    main()
