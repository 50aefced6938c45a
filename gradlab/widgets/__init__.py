"""The interactive half: ipywidgets only, and no logic of its own beyond what a click means."""
