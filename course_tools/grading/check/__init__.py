"""`course check`: what a student asks before handing in."""
