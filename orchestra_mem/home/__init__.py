"""The list of a user's projects, and queries to all of their memories at once."""

from orchestra_mem.adapters.home import ListedProject
from orchestra_mem.home.projects import Projects

__all__ = ["ListedProject", "Projects"]
