"""The exercises of notebook 09."""
