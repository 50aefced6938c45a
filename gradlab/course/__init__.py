"""What only the notebooks of the series need."""
