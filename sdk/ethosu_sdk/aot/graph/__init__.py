"""Graphs of torch.fx, TOSA and ExecuTorch's programs: reading and executing them, and the values in them."""
