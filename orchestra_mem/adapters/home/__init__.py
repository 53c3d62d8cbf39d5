"""The home: the folder of a user, outside of any project, that holds what all their projects share."""

from orchestra_mem.adapters.home.folder import HOME_VARIABLE, home_folder

__all__ = ["HOME_VARIABLE", "home_folder"]
