"""What a command stream does too early."""
