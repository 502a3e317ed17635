"""What the operations compute: arrays in, accumulators out. No registers, no memory."""
