"""Arrays in, arrays out: no classes with behaviour, no files, no progress bars.

``rules`` names the choices; ``reference`` defines them in NumPy, one line per equation; ``draws`` and ``sequential``
are the same in compiled form. What is random comes in as an array of uniform numbers, so that every execution can
be compared with the definition on the same draws.
"""
