"""Compares each stage of a compilation with the stage before it, and evaluates the model on labelled samples."""
