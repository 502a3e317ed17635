"""Rewrites of graphs from the exported program to the `.pte`: `table` has all in their order, `frame` runs them."""
