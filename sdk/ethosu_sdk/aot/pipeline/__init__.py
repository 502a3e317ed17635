"""A compilation from end to end: the process, the order of its stages, and the files."""
