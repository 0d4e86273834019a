"""Tests of chapter 7's experiments."""
