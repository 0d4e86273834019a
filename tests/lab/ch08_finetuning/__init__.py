"""Tests of chapter 8's experiments."""
