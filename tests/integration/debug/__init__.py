"""The look inside of delegates."""
