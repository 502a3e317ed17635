"""The firmware's kernels and the zoo on Arm's prebuilt runner beside our firmware."""
