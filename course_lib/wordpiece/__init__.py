"""Chapter 4: text normalisation, WordPiece training, and the tokenizers."""
