"""Tests of chapter 2's experiments."""
