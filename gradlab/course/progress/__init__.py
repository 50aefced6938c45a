"""What a learner has done: the map of the series with ticks, the record as a table and as CSV, a class's histograms."""
