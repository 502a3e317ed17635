"""Pages: one HTML file each, with scripts, style and data in it; and `ethosu-sdk report`, the page of runs."""
