"""Two processes that call each other's functions with data alone; README.md beside this
says what for."""
