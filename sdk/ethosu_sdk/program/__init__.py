"""Programs: reading a `.pte` and its data files without ExecuTorch, fast and safe with files that are damaged."""
