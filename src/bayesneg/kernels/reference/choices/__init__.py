"""Every rule by which a built-in sampler chooses a negative, with its executable specification in NumPy.

A rule is a plain tuple of numbers and arrays that NumPy, numba and torch all read. ``Rule.chooser`` is its
specification: slow and short on purpose. ``kernels/numba/choices/`` and ``kernels/torch/choices/`` execute the same
rules, in modules of the same names, and are tested equal to it, ties included. A module here is a family of rules; a
new one is found by its name, in all three.
"""
