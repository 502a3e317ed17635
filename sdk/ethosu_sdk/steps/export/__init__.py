"""`ethosu-sdk export`: what other builds must know of a program."""
