"""The home: the folder of a user, outside of any project, that holds what all their projects share."""

from orchestra_mem.adapters.home.registry import HOME_VARIABLE, ListedProject, ProjectRegistry, has_memory, home_folder

__all__ = ["HOME_VARIABLE", "ListedProject", "ProjectRegistry", "has_memory", "home_folder"]
