"""Parts of records that are long enough for a module of their own."""
