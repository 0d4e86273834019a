"""Tests of chapter 10's experiments."""
