"""Files of other tools as models: one module for each."""
