"""The samplers in any torch loop: tensors in, tensors out, on their device.

>>> import bayesneg.torch as bnt
>>> sorted(bnt.__all__)
['GradientShare', 'Negatives', 'Sampler', 'choose', 'log_unbias', 'losses']
"""

from bayesneg.interfaces import Negatives
from bayesneg.torch import loss_functions as losses
from bayesneg.torch.from_scores import choose, log_unbias
from bayesneg.torch.gradient_share import GradientShare
from bayesneg.torch.sampler import Sampler

__all__ = ["GradientShare", "Negatives", "Sampler", "choose", "log_unbias", "losses"]
