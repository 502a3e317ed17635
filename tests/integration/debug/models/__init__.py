"""Models as their users write them: `debug` loads these files by their paths."""
