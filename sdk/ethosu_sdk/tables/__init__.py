"""What records show: rows, words and tables that steps print and readers write in other places too."""
