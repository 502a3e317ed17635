"""Simulators: they run a program or its firmware, and return what it computed, printed and counted."""
