"""First floor: text becomes words, words become ids, sentences become batches. Knows numpy, no tensors.

files/       text as it lies on a disk          splitting/   how running text is cut into words and sentences
corpus       sentences of words from files      counting/    what a corpus holds; report: what is wrong with it
shards/      a corpus as numbers on a disk      batching/    which sentences are read together
labelled/    files of labelled data             vocabulary, characters, pieces: words as ids
"""
