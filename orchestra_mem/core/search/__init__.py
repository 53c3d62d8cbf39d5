"""Search: chunks, terms, questions, the exact index, and the order of what is found."""
