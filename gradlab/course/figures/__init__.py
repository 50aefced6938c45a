"""Figures for the notebooks of the series."""
