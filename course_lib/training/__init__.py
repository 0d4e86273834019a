"""Service: one training loop, its state, schedules, devices and precision."""
