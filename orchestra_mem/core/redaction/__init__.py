"""Find secrets and personal data in texts and values, and replace them by placeholders."""
