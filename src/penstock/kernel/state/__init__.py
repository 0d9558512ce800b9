"""Steps that remember, over blocks: aggregator, resequencer, idempotent receiver, and the state they keep by key."""
