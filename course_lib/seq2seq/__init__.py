"""Chapter 1: an encoder and a decoder with attention, and the three searches."""
