"""The one door to the terminal."""
