"""`ethosu-sdk export`: settings of a program for other builds."""
