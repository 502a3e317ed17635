"""From the files that models come in to programs: the table of front ends, and those that are not PyTorch."""
