"""One file per foreign weights format, and `load`, which tells them apart by content."""
