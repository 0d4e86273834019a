"""What is told of a class: reports, feedback, exports."""
