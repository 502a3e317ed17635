"""Independent sources of expected values. None of them uses the SDK's NPU model or its firmware."""
