"""The site: pages executed and laid out."""
