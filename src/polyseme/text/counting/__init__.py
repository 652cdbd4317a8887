"""Counts of a corpus in bounded memory: words, distinct words, co-occurrences."""
