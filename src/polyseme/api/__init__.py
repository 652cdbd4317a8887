"""The public functions: one for each thing that polyseme does, typed, and importable without PyTorch."""
