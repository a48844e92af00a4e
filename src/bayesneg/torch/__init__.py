"""The samplers in any torch loop: tensors in, tensors out, on their device.

>>> import bayesneg.torch as bnt
>>> sorted(bnt.__all__)
['choose', 'log_unbias']
"""

from bayesneg.torch.from_scores import choose, log_unbias

__all__ = ["choose", "log_unbias"]
