"""All projects of a user: which there are, and questions to all of them at once. Each memory is opened as ever."""

from orchestra_mem.adapters.home import ListedProject
from orchestra_mem.home.projects import Projects

__all__ = ["ListedProject", "Projects"]
