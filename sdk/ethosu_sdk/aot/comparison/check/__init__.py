"""Checks that a program computes what its model does, and finds where the two begin to differ."""
