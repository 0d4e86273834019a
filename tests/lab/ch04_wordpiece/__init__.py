"""Tests of chapter 4's experiments."""
