"""The run-time type checker of the tests: an int will do for a float, as in ordinary Python."""

from beartype import BeartypeConf, beartype

typechecker = beartype(conf=BeartypeConf(is_pep484_tower=True))
