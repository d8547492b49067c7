"""Benches: how fast the checker is, each figure beside a peer's from the same minutes."""
