"""A corpus as numbers on disk, encoded once and memory-mapped."""
