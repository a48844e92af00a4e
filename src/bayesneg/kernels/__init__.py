"""The choices of samplers and the steps of training as functions of arrays, in three executions.

``reference`` is the executable specification in NumPy, one line per equation; ``numba`` and ``torch`` (with ``triton``)
execute the same rules under the same names. All randomness comes in as arrays drawn beforehand, so that every execution
is compared with the specification on the same draws.
"""
