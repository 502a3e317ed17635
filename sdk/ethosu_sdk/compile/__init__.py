"""From a PyTorch model to a `.pte`: this package's modules are light to import; torch, ExecuTorch and Vela are loaded in a child process."""
