"""What a corpus holds, counted in bounded memory: its words, the distinct ones, and which stand near each other."""
