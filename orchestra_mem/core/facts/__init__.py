"""Facts (must-keeps): find them in operations and text, classify them, and supersede them by later facts."""
