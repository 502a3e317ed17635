"""Works around faults of the pinned tools while a program is lowered."""
