"""One file per format; each reads its source into :class:`~bayesneg.data.readers.pairs.Pairs` of raw identifiers."""
