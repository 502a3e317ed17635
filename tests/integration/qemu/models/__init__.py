"""Models that run as firmware on QEMU: which ones, on which NPU, and how they are compiled."""
