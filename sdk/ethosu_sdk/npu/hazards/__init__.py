"""Hazards: operations of a command stream that start too early."""
