"""Runs Vela: its flags and configuration, and the checks and facts from its output."""
