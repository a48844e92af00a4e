"""The posterior inside other people's software. Each module imports its library: install the extra ``integrations``.

``sentence_transformers``: a loss for in-batch negatives, and a judge of mined hard negatives. ``pykeen``: a negative
sampler for knowledge graphs. ``word_overlap``: a prior for pairs of texts.
"""
