"""Chapter 11's experiments: encoders today."""
