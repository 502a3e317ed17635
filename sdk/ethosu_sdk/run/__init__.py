"""Runs of a program: job, inputs, runners, evidence, verdict and record; scripts of calls; generated text."""
