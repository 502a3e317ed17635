"""`ethosu-sdk debug`: numerics inside of delegates."""
