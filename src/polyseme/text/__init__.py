"""Floor 1: text becomes words, words become ids, sentences become batches. Uses numpy, no tensors.

files/       reading text from disk              splitting/   splitters of words and sentences
corpus       sentences of words from files       counting/    word counts; corpus_report: problems of a corpus
shards/      a corpus as numbers on disk         batching/    which sentences are read together
labelled/    files of labelled data              vocabulary, characters, subwords: words as ids
"""
