"""Every zoo model on one configuration of each family: docs/zoo-matrix.md, and the program that writes it."""
