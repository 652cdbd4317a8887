"""Published networks of tasks, over word vectors."""
