"""The model's context: choosing items, filling the budget, rendering, and tracking how full the window is."""
