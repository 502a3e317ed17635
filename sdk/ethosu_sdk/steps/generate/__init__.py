"""`ethosu-sdk generate`: a language model goes on with a prompt, token by token, on the board."""
