"""What can be read off autograd's graphs."""
