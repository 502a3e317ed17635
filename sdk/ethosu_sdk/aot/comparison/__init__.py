"""Each stage of a compilation against the one before, and the model on labelled samples."""
