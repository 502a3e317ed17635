"""`ethosu-sdk verify`: do what a record describes again, and compare."""
