"""`ethosu-sdk report`: the records of runs as one HTML page that needs nothing else."""
