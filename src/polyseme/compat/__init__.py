"""The calls of ELMo libraries that no longer install, over polyseme: old scripts run with only their import lines changed.

One file per old library. See docs/en/how-to/migrate.md; `polyseme migrate script.py` changes the imports.
"""
