"""Every rule of ``kernels/reference/choices/`` for a batch at once, in torch, on any device.

One small class per rule: its numbers as tensors, the choice, and what it remembers. It is registered with
``base.executes`` in the module with the name of the rule's module, which is imported when it is first needed.
"""
