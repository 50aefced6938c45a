"""The patients, one in two files each."""
