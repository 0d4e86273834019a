"""Service: figures, and the widgets that pages draw."""
