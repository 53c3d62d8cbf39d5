"""Markdown documents: their sections, their merge with what a person wrote, who wrote which line."""
