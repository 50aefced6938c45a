"""Instruments for the notebooks: controls, with pictures and texts that depend only on the controls' values."""
