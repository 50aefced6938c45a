"""What only the notebooks need: exercises, claims, the cheat sheet, processes and the figures of one notebook."""
