"""Deprecated alias of `orchestra_mem.compression.compressor`: names still resolve here, with a warning."""

from importlib import import_module
from warnings import warn


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    warn("orchestra_mem.compressor has moved to orchestra_mem.compression.compressor", DeprecationWarning, stacklevel=2)
    return getattr(import_module("orchestra_mem.compression.compressor"), name)
