"""The loss scale: what a 16-bit backward pass makes of each gradient, and how GradScaler finds a scale."""
