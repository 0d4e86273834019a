"""Two processes that call each other with data alone; README.md says what for."""
