"""People come in: the command line, one module a verb or a small family of them."""
