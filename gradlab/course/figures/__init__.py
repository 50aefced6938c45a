"""Figures that belong to one notebook."""
