"""One file per format; each gives :class:`RawInteractions`, rows with raw identifiers."""
