"""The experiments of the book: a chapter runs them live, `course experiment` records
them."""
