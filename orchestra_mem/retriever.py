"""Deprecated alias of `orchestra_mem.retrieval.retriever`: names still resolve here, with a warning."""

from importlib import import_module
from warnings import warn


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    warn("orchestra_mem.retriever has moved to orchestra_mem.retrieval.retriever", DeprecationWarning, stacklevel=2)
    return getattr(import_module("orchestra_mem.retrieval.retriever"), name)
