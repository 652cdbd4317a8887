"""Which sentences are read together, and in which order: positions that can be taken up anywhere."""
