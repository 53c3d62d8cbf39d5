"""Secrets and personal data in texts: how they are found, and what stands in their place. Who calls it is elsewhere."""
