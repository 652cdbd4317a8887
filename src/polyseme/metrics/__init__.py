"""Metrics: scores of predictions against gold labels. Lists and numbers in, numbers out."""
