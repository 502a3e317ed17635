"""From a PyTorch model to a `.pte`. Light modules: torch, ExecuTorch and Vela are loaded in a child process."""
