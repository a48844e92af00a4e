"""``fit``: the only training loop."""

from bayesneg.training import loop
from bayesneg.training.arguments import model_first

fit = model_first(
    "bn.fit(None, split) trains what is recommended, bn.fit(bn.MF(), split, bn.BNS()) a model with a sampler"
)(loop.fit)
