"""Histories that are read in: one file a kind of source, each giving what it finds as `HistoryOperation`s."""
