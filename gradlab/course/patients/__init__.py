"""Patients: broken training loops to edit, run under the doctor and cure, and a learner's own loop under the same eyes.

A patient is a ``.md`` in ``cases`` with its words and its loops, and a definition in ``case.py`` of what its loop is
given and when it counts as cured.
"""
