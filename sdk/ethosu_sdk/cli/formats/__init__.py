"""Commands that write for other tools: records in their formats, and what their builds must know of a program."""

from ethosu_sdk.cli.formats import convert, export  # noqa: F401
