"""The exercises of notebook 13."""
