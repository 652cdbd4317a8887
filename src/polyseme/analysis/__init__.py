"""What a model knows: probes and similarities of its layers, and pictures of them."""
