"""The rules of work: transitions of a status, circles of waiting, ranks, changes as text. Who keeps it is the tier."""
