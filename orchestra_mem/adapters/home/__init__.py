"""The home: a folder of the user, outside of all projects, for data that the projects share."""

from orchestra_mem.adapters.home.registry import HOME_VARIABLE, ListedProject, ProjectRegistry, has_memory, home_folder

__all__ = ["HOME_VARIABLE", "ListedProject", "ProjectRegistry", "has_memory", "home_folder"]
