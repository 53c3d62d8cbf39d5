"""Summaries: segments and levels, selection of sentences, the check, and must-keeps kept verbatim."""
