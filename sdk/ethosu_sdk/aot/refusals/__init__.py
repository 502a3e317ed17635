"""Errors for models that PyTorch runs but the tools cannot compile: the operator, its line, and a workaround."""
