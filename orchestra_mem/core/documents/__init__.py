"""Markdown documents: their structure, their lines with an identity, and merging with manual edits."""
