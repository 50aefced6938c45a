"""Patients: broken training loops to edit, run under the doctor, and cure; and a learner's own loop, looked at the same way.

A patient is a ``.md`` and a ``.py`` of one name in ``cases``, found by being there: its words and loops in the one, what
it is given and when it counts as cured in the other.
"""
