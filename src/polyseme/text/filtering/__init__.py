"""Which documents of a crawl are worth reading: near-duplicates, languages, quality."""
