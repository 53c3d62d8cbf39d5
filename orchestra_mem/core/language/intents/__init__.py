"""What a line asks for: words made even, clauses, patterns of commands and questions."""
