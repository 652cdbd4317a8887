"""Studies: comparisons of encoders over tasks and seeds, in separate processes."""
