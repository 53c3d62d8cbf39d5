"""Markdown documents: their structure, merging with manual edits, and the author of each line."""
