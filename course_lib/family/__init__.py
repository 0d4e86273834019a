"""Chapter 10: ALBERT, DistilBERT, ColBERT, prompting, and other inputs."""
