"""Chapter 5: BERT, the encoder, its configuration, and its files."""
