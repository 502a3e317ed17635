"""Commands about the installation itself: the tools, Arm's FVP, the parts list."""
