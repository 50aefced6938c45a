"""The exercises of notebook 01."""
