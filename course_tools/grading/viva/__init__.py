"""`course viva`: questions on a student's own code, asked aloud or on paper."""
