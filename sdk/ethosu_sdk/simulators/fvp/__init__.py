"""Arm's Fixed Virtual Platforms: licensed models of Corstone boards with an Ethos-U, run as a child process."""
