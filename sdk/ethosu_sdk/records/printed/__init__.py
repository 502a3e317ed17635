"""Kinds of record that commands print with --json, and that lie in no folder of results."""
