"""Runs whose inferences are steps of a sequence."""
