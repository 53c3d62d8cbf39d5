"""Chunking of texts, parsing of queries, and ranking of the chunks that an index finds."""
