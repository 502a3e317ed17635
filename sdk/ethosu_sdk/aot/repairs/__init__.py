"""Faults of the pinned tools, undone while a program is lowered."""
