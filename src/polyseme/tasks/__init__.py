"""Tasks that encoders are put to: one file each, all trained, saved and asked in the same way."""
