"""What each command does. They raise SdkError; only :mod:`ethosu_sdk.cli` prints errors and exits."""
