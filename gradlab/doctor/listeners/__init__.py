"""One listener for each part of PyTorch that the doctor watches."""
