"""Tasks on encoders: one file each, all trained, saved and used in the same way."""
