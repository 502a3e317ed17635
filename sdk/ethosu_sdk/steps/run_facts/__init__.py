"""What a run's program says and no record has, as :mod:`ethosu_sdk.results.run_facts`."""
