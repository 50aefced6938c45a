"""The instruments of the series, which show pictures and text that depend only on the values of their controls."""
