"""Base: errors, configs, files, locks, signals. Imports nothing else of polyseme."""
