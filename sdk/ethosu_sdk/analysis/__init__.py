"""Commands that look into programs and runs: profile, debug, inspect, verify, export, trials of `advise`."""
