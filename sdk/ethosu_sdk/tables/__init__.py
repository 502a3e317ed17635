"""Rows, words and tables made from records, which steps print and readers write elsewhere."""
