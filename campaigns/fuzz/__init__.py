"""Damaged command streams and weights: whatever the NPU model is given, it ends soon and touches nothing else."""
