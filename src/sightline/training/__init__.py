"""Training: the loop, checkpoints, optimisers and schedules. One for all tasks."""
