"""Teeth: machines with one fault each, and whether anything notices."""
