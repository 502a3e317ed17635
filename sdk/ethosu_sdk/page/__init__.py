"""What pages have in common: one HTML file each, with scripts, style and data in it, that connects to nothing."""
