"""`ethosu-sdk inspect`."""
