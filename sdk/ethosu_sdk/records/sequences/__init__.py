"""Records of sequences of inferences."""
