"""The paper's tables, as declarations of rows, and what makes them."""
