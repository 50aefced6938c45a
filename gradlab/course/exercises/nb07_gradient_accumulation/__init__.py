"""The exercises of notebook 07."""
