"""Rules for work items: status transitions, dependency cycles, changes as text. `tiers/state.py` applies them."""
