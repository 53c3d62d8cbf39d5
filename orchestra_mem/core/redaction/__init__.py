"""Finding secrets and personal data in texts, and what stands in their place. Who calls it on the way in is elsewhere."""
