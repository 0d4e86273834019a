"""Where the book's sources are."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
