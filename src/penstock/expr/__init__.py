"""One expression language: the tree, its meaning, its types, and the front ends that write it."""
