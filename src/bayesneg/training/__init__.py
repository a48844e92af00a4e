"""``fit``: the only training loop."""

from bayesneg.training.loop import fit as fit
