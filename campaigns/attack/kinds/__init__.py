"""The kinds of attacks: each module makes the cases of its kind."""
