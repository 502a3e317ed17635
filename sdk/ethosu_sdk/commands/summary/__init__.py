"""`ethosu-sdk summary`."""
