"""Tests of chapter 6's experiments."""
