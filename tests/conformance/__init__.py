"""The NPU model against the TOSA reference model, byte by byte, on streams that Vela compiled."""
