"""Attacks on the command: damaged and hostile files, kills and full disks for a given time, seed and choice of kinds.

`campaign` runs them, one module per kind makes them, `oracle` says what is wrong, `process` measures a command.
"""
