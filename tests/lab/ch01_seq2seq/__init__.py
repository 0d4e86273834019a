"""Tests of chapter 1's experiments."""
