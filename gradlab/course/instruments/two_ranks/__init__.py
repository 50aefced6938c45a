"""Two ranks of a DDP training, run by two real processes: `two_ranks()` in `gradlab.course`."""
