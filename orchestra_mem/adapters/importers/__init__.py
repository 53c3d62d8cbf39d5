"""Importers of histories: one module per kind of source, which yields `HistoryOperation`s."""
