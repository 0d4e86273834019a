"""Chapter 8: heads, examples, losses and training for tasks."""
