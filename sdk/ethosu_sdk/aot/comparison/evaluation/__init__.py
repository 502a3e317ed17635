"""The model on labelled samples, before and after quantisation."""
