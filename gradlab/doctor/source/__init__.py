"""Reads the learner's source: the code that caused an event, and the line to edit.

The events show what happened; this package finds the expressions that did it. Searches for the line to edit return
None where there are several candidates, or none: no location is better than a guessed one.
"""
