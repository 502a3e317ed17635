"""From the command stream's words to one descriptor per operation."""
