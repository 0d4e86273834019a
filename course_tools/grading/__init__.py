"""Releasing, checking and grading assignments."""
