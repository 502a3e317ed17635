"""ethosu-sdk: compile, build, run and verify ExecuTorch models for Arm Ethos-U NPUs."""

__version__ = "0.1.0"
