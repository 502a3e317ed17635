"""Cycles of a Cortex-M core from the blocks that it executed: counts times prices."""
