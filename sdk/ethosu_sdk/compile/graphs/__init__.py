"""Graphs of torch.fx and TOSA: reading and executing them, the values in them, and the model's lines behind them."""
