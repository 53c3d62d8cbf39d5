"""Chunk texts, read queries, and rank what an index finds."""
