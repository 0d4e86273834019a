"""Tests of chapter 5's experiments."""
