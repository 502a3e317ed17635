"""Targets without an NPU, and the fallback of those that have one."""
