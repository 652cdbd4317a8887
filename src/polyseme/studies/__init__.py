"""Whole pieces of work over several rooms: files, encoders by name, training, scores."""
