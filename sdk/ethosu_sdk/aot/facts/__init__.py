"""Frozen data: the request of a compilation and the results of its stages."""
