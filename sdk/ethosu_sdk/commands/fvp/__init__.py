"""`ethosu-sdk fvp`."""
