"""What several steps share."""
