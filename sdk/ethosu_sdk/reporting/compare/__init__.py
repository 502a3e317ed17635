"""`ethosu-sdk compare`: what became better or worse between two runs, and at which operator."""
