"""What files are, by their content."""
