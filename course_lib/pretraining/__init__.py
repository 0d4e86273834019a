"""Chapter 6: masking, sentence pairs, and batches for pre-training."""
