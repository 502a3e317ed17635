"""The NPU model's parts, with expectations written from the manuals and by hand."""
