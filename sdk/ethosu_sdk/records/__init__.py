"""Records: what commands write as JSON, the folders in which they lie, and their words."""
