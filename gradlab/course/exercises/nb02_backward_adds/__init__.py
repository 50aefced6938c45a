"""The exercises of notebook 02."""
