"""Whole networks of tasks, as they were published, over the vectors of words."""
