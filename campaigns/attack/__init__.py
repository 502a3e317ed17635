"""Attacks on the command: damaged and hostile files, kills and full disks for a given time, seed and choice of kinds.

`campaign` runs them, the modules of `kinds` make them, `oracle` says what is wrong, `process` measures a command.
"""
