"""Work on every byte of a message as machine code: an optional, faster way to the same result.

`body` decodes JSON, as `json.decode` says, with `numbers` and `strings`; `lines` cuts a block of text into lines.
`layout` names the words of the tables. All that is compiled with Numba by `compilation`, in a process of its own;
`machinecode` keeps and loads the result; `columns` makes Arrow of it, with `converting` for what is written as text.
"""
