"""The book: the specification as a document, rendered from the trees that are checked."""
