"""Files of text as they lie on a disk: found, unpacked, and read some lines at a time."""
