"""Engines: ways to explore a model exhaustively."""
