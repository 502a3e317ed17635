"""`ethosu-sdk compile --evaluate`."""
