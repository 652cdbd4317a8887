"""A corpus as numbers on a disk, encoded once and mapped into memory."""
