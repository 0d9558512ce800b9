"""JSON bodies decoded by machine code: an optional, faster way to what `json.decode` says.

`layout` names the words of the tables; `blocks`, `numbers`, `strings` and `body` are compiled with Numba by
`compilation`, in a process of its own; `machinecode` keeps and loads the result; `columns` makes Arrow of it.
"""
