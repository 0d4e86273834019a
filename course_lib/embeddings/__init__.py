"""Chapter 7: static and contextual word vectors, ELMo, and a causal model."""
