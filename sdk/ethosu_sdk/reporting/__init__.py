"""Commands that judge, show or convert finished records. What they need of programs, cli/ gives them."""
