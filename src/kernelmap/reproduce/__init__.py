"""The paper's experiments, each a declaration of rows, and what makes them."""
