"""Facts in text: found, weighed, compared, and which of them still hold."""
