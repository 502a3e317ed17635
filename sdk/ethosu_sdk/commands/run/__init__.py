"""`ethosu-sdk run`."""
