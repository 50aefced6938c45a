"""What can be read off the learner's source."""
