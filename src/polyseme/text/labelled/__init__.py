"""Readers of labelled data, one format per file; every error names file and line."""
