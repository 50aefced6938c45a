"""What becomes of the findings: which count, in which form, and as a picture."""
