"""Quantisation that the user brings: quantisers, and programs that are quantised already."""
