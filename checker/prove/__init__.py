"""Proofs by z3: arithmetic for all positions, safety for any number of prefixes and requests."""
