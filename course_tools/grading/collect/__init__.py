"""`course collect`: what a platform's download holds, and whose it is."""
