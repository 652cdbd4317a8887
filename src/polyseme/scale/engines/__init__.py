"""What runs work on many shards: processes of one machine, or a Ray cluster. Results are the same."""
