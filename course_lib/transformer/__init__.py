"""Chapter 3: positions, both blocks, the Transformer and its output heads."""
