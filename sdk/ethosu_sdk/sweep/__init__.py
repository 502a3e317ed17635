"""`ethosu-sdk sweep`: many models by many targets, modes, compilers and simulators, kept in one folder."""
