"""Folders of results: their names, their manifest, and how records are read from them."""
