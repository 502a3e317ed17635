"""`ethosu-sdk convert`: records in formats that other tools open."""
