"""How rows lie in pages: layouts, and the packed formats of entries and index keys."""
