"""Every rule of ``kernels/reference/choices/``, compiled: one choice for one example.

A rule's function is registered with ``base.chooses``, in the module with the name of the rule's module, which is
imported when the rule is first needed. These functions are inlined into the entry points of ``sgd`` and are not cached
on their own.
"""
