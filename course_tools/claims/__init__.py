"""The ledgers that close the book: what was claimed and what we measured, what is
taught where, what we do otherwise.

Claims are data (``claims.yaml``): the claim in our words, the published figure with
its citation, where our figure comes from, and the rule that gives the verdict. No
figure of ours is typed. It is read from a record, from what a page glued as it was
executed, or from a function that computes it on the spot.
"""
