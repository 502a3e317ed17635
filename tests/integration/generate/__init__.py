"""`generate`, through the command line."""
