"""Reading a typed line: a strict grammar is done, a trained classifier and a model only suggest."""
