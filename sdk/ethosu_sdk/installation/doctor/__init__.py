"""`ethosu-sdk doctor`."""
