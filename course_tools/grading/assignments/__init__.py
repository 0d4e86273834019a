"""Assignments: read, checked, released, and tried with known answers."""
