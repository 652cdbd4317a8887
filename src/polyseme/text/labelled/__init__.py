"""Files of labelled data, one kind a file: every mistake in them is told with its file and line."""
