"""Recognises files by their content, and opens, reads and writes them safely."""
