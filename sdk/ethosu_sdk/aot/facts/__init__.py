"""Frozen data: what a compilation is asked, and what its stages hand up."""
