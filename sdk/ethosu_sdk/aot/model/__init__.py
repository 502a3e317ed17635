"""The user's model: found, loaded and looked through before anything is made of it."""
