"""A trained model over HTTP (the extra ``serve``)."""
