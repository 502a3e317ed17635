"""QEMU with the SDK's NPU model as the Ethos-U."""
