"""The LSTM stacks of ELMo: a plain reference, and faster ways on CPU and GPU that equal it."""
