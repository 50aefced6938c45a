"""The exercises of notebook 06."""
