"""Run the command line by `python -m orchestra_mem`."""

from __future__ import annotations

from orchestra_mem.faces.cli import main

if __name__ == "__main__":
    main()
