"""What words refer to: phrases read by grammar, candidates from the talk and the state of work, and the doubt."""
