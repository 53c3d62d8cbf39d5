"""Deprecated alias of `orchestra_mem.memory.manager`: names still resolve here, with a warning."""

from importlib import import_module
from warnings import warn


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    warn("orchestra_mem.manager has moved to orchestra_mem.memory.manager", DeprecationWarning, stacklevel=2)
    return getattr(import_module("orchestra_mem.memory.manager"), name)
