"""Language: what a line asks for, what its words refer to, and answers told in words."""
