"""Patients: broken training loops to edit, run under the doctor and cure, and a learner's own loop under the same eyes.

A patient is a ``.md`` and a ``.py`` of one name in ``cases``, found by being there. The first holds its words and its
loops, the second what its loop is given and when it counts as cured.
"""
