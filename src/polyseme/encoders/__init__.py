"""One file per system: words in, layers of vectors out."""
