"""The files that models come in: their table, the MODEL argument, and how Python, `.pt2` and ONNX become modules."""
