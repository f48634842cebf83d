"""Control laws of the documents, for comparison."""
