"""The HTTP service: vectors and answers of loaded models, over the public Python functions (extra `serve`)."""
