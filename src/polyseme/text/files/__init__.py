"""Files of text: found, decompressed, and read in chunks of lines."""
