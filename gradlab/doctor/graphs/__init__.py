"""Analysis of autograd's graphs and of the calls that made them."""
