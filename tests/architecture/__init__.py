"""The rules of the house as tests over the source: imports, sizes, tables, documents. A rule with an exception says
why."""
