"""Seeing that somebody has saved a document, whatever an editor does to save it. What is made of it lives above.

An event only says when to look. What has changed is told by comparing the files with what was last told of them, so an
event that is lost, doubled or late, or that tells of another file, does no harm: the system's own events (watchdog) and
polling differ in nothing but when somebody looks.
"""

from orchestra_mem.adapters.watcher.watcher import DocumentWatcher

__all__ = ["DocumentWatcher"]
