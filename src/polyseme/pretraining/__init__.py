"""One file per system: text in, a trained encoder out."""
