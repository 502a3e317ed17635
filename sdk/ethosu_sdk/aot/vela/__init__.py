"""What Vela is told, and what it tells."""
