"""The peak: one update's memory as a mountain by category, and which switch moved its top."""
