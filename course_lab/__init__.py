"""The experiments of the book: a chapter runs them live, `course record` records
them."""
