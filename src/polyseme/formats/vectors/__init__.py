"""Files of vectors: one file for each kind, `store` which fills them, and `check` which compares them."""
