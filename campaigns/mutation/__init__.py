"""Planted faults: which tests find each (campaigns/mutation/README.md)."""
