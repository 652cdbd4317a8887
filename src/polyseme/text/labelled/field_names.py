"""Names that datasets use for the same fields, in the order in which they are looked for."""

WORDS = ("tokens", "words", "form", "token")
TAGS = ("ner_tags", "tags", "labels", "upos", "pos_tags", "xpos", "chunk_tags", "pos", "label")
TEXT = ("text", "sentence", "content", "文本", "内容", "句子")
"""The text of a row with marked spans (`marked_texts`), and below those spans and their own fields."""
SPANS = ("entities", "spans", "ents", "label", "labels", "annotations", "entity_list")
BEGIN = ("start", "begin", "start_offset", "start_idx", "start_pos")
END = ("end", "end_offset", "end_idx", "end_pos")
KIND = ("label", "type", "entity_type", "label_type", "tag")
MARKED = ("text", "entity", "word", "value", "mention")
"""The marked text itself."""
