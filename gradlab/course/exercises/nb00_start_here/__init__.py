"""The exercises of notebook 00."""
