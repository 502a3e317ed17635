"""The chain of comparisons between the user's model and the program that is lowered.

float eager → exported graph → prepared graph → quantised graph; the last link, to what was executed, is
:mod:`ethosu_sdk.steps.compile.check`. Every link has several different samples in a row, with the state kept.
"""
