"""Tests of chapter 9's experiments."""
