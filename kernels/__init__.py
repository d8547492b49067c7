"""Device code in Triton; it sees spec only, and is empty in this release."""
