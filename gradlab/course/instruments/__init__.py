"""Instruments of the notebooks: controls, and pictures and words that answer them at once."""
