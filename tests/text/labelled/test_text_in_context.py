"""Words that are read where they stand."""

from polyseme.text.labelled.text_in_context import TextInContext, document_of, in_documents, start_in_document


def test_a_text_of_its_own_is_its_document():
    assert document_of(["a", "b"]) == (("a", "b"),) and start_in_document(["a", "b"]) == 0


def test_a_phrase_of_a_later_sentence():
    document = (("a", "b"), ("c", "d", "e"))
    found = TextInContext(document, 1, 1, 3)
    assert found == ["d", "e"] and document_of(found) == document and start_in_document(found) == 3


def test_long_documents_are_read_in_parts():
    sentences = [["a"] * 3, ["b"] * 3, ["c"] * 9, [], ["d"], ["e"] * 3]
    found = in_documents(sentences, [0, 0, 0, 0, 0, 1], max_words=6)
    assert found == sentences
    assert [[len(sentence) for sentence in document_of(text)] for text in found] == [[3, 3], [3, 3], [9], [0, 1], [0, 1], [3]]
    assert [start_in_document(text) for text in found] == [0, 3, 0, 0, 0, 0]
    assert in_documents([], []) == []
