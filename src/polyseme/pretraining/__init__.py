"""Pre-training: a corpus in, a trained encoder out. `methods` is the registry; each method has a config and a job."""
