"""What the manager is made of: each module one of its tasks, over tiers and ports."""
