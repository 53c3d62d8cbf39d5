"""Entry point of the command line: the `orchestra-mem` program and `python -m orchestra_mem`."""

from __future__ import annotations

import gc


def main() -> None:
    """Run the command line, with less frequent garbage collection: imported modules live until exit anyway."""
    gc.set_threshold(200_000)
    from orchestra_mem.faces import cli

    cli.main()


if __name__ == "__main__":
    main()
