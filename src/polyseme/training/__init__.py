"""Training: one loop for pre-training objectives and tasks. It knows neither words nor encoders."""
