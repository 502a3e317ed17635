"""The commands that make records: each may compile, build or run."""
