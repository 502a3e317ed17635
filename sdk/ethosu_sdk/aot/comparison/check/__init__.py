"""Whether a program computes what its model does, and where it starts not to."""
