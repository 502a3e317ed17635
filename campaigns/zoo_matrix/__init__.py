"""Every zoo model on one configuration of each family: docs/reference/zoo-matrix.md, and what writes it."""
