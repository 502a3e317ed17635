"""`ethosu-sdk sbom`."""
