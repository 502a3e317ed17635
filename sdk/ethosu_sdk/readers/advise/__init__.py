"""What to change about a program so that it runs better: facts of its records, patterns in them, advice."""
