"""First floor: text becomes words, words become ids, sentences become batches. Knows numpy, no tensors."""
