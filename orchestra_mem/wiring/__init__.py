"""Adapters, tiers and services joined as the settings say; `build` is the door."""
