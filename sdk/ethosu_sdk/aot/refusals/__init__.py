"""Models that PyTorch runs and the tools fail on: which operator it was, at which line, and what works instead."""
