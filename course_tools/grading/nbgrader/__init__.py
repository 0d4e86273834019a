"""What stock nbgrader runs and shows, made safe."""
