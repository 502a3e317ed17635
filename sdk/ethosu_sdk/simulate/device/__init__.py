"""A device on a wire: a board, or a simulator that stands for one, whose firmware takes programs over its UART."""
