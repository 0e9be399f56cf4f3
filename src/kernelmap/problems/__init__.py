"""Problems: generators of systems whose hidden kernel is known, to train on and to be tested against."""
