"""How a kernel is started, what is refused before, and how wide it may read."""
