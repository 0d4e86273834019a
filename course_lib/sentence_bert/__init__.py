"""Chapter 9: sentence embeddings, their losses, training and search."""
