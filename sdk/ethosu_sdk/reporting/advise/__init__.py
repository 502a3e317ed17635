"""`ethosu-sdk advise`: facts of a program's records, patterns in them, and what to change about it."""
