"""What only the notebooks of the series need: exercises, claims, the cheat sheet, processes and measurements."""
