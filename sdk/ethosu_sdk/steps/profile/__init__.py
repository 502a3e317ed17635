"""`ethosu-sdk profile`: where an inference's cycles and bytes go, operation by operation."""
