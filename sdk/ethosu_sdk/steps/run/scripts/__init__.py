"""Runs of several methods in turn, as a script of calls says."""
