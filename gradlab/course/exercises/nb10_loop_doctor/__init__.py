"""The exercises of notebook 10."""
