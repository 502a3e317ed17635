"""`ethosu-sdk parse-log`."""
