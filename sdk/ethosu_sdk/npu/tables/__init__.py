"""The registers, commands and events of Ethos-U, as data."""
