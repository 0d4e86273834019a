"""Chapter 11: encoders today, and how they are trained, searched with and adapted."""
