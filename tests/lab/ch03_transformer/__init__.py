"""Tests of chapter 3's experiments."""
