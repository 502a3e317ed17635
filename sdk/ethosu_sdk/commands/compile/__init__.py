"""`ethosu-sdk compile`."""
