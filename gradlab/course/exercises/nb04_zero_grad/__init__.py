"""The exercises of notebook 04."""
