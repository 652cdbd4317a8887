"""Scores of answers against the truth; plain lists and numbers in, numbers out."""
