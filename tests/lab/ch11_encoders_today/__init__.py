"""Tests of chapter 11's experiments."""
