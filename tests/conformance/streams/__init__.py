"""Properties of whole command streams: hazards, and pieces of them."""
