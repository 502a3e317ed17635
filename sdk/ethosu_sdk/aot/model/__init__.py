"""Finds, loads and checks the user's model before it is compiled."""
