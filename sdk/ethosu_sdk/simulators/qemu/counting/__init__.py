"""Counts of executed blocks: the plugin in QEMU, and the file that it counts in."""
