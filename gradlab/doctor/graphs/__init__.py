"""Readers of autograd's graphs."""
