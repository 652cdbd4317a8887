"""ELMo's LSTM stacks: a plain reference, and faster paths on CPU and GPU that equal it."""
