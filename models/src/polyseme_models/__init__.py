"""Small trained models for polyseme, each a model folder beside this file: `polyseme.load("en-ngram")` finds them by name."""

__version__ = "0.1.0"
