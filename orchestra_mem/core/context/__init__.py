"""The context for the model: what enters it, how it is filled and rendered, how full the window is."""
