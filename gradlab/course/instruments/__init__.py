"""The instruments of the series: each a function of its controls' values to pictures and words."""
