"""Where to edit: the line that brings a mistake about, looked for in the source of the functions that ran.

What happened is known from the events; here it is only looked up which words in the source did it. Every function
returns None where several places are possible, or none: a place that is guessed is worse than none.
"""
