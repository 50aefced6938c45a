"""The exercises of notebook 05."""
