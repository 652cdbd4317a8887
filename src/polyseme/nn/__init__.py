"""Ground floor: networks over tensors. Knows no strings and no files."""
