"""The command `course`: the site, the claims, and grading."""
