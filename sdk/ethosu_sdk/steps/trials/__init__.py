"""Tries changes of a program: each is compiled, run and profiled as the program was (:mod:`.trying`)."""
