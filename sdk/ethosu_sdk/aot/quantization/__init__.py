"""Quantisation that the user provides: quantisers, and programs that are already quantised."""
