"""Summaries: segments and levels, choosing and shortening sentences, the check, what is kept verbatim."""
