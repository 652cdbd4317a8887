"""Output layers of language models, and their losses: full, tied, adaptive, sampled."""
