"""Searches of the learner's source for the code that caused an event, and for the line to edit.

Events record what happened; this package finds the expressions that caused it. A search for the line to edit returns
None if there are several candidates or none, because a wrong location would be worse than none.
"""
