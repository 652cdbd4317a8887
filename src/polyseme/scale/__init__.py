"""Work beyond one process: text is cut into shards, workers turn shards into parts, and a manifest says what is done."""
