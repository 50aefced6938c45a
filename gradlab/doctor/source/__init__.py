"""What can be read off the learner's source: what happened there, and the line to edit.

What happened is known from the events; here it is only looked up which words in the source did it. What looks for the
line to edit returns None where several places are possible, or none: a place that is guessed is worse than none.
"""
