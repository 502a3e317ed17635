"""What files are, by their content; and how they are opened."""
