"""Where the names of old ELMo libraries are now: the tables of `polyseme migrate`."""

from __future__ import annotations

_FILES = {"DEFAULT_OPTIONS_FILE", "DEFAULT_WEIGHT_FILE"}
_INSIDE = {"ELMoCharacterMapper", "_ElmoBiLm", "remove_sentence_boundaries"}
_ALLENNLP = ("allennlp", frozenset({"Elmo", "ElmoEmbedder", "ScalarMix", "batch_to_ids"} | _FILES | _INSIDE))
_BILM_NAMES = {"Batcher", "TokenBatcher", "BidirectionalLanguageModel", "weight_layers"}
_BILM = ("bilm", frozenset(_BILM_NAMES | {"dump_bilm_embeddings", "dump_token_embeddings"}))
_MANYLANGS, _SIMPLE = ("elmoformanylangs", frozenset({"Embedder"})), ("simple_elmo", frozenset({"ElmoModel"}))
_FLAIR, _SEQVEC = ("flair", frozenset({"ELMoEmbeddings"})), ("bio_embeddings", frozenset({"SeqVecEmbedder"}))

HUB = "tensorflow_hub"
MODULES: dict[str, tuple[str, frozenset[str]]] = {
    "allennlp.commands.elmo": _ALLENNLP,
    "allennlp.data.token_indexers.elmo_indexer": _ALLENNLP,
    "allennlp.modules": _ALLENNLP,
    "allennlp.modules.elmo": _ALLENNLP,
    "allennlp.modules.scalar_mix": _ALLENNLP,
    "allennlp.nn.util": _ALLENNLP,
    "bilm": _BILM,
    "bilm.data": _BILM,
    "bilm.elmo": _BILM,
    "bilm.model": _BILM,
    "bio_embeddings": _SEQVEC,
    "bio_embeddings.embed": _SEQVEC,
    "bio_embeddings.embed.seqvec_embedder": _SEQVEC,
    "elmoformanylangs": _MANYLANGS,
    "elmoformanylangs.elmo": _MANYLANGS,
    "flair.embeddings": _FLAIR,
    "flair.embeddings.legacy": _FLAIR,
    "flair.embeddings.token": _FLAIR,
    "simple_elmo": _SIMPLE,
    "simple_elmo.elmo_helpers": _SIMPLE,
}
"""By old module: the module of `polyseme.compat`, and the names that it has."""
WHOLE = {"bilm": "bilm", "elmoformanylangs": "elmoformanylangs", "simple_elmo": "simple_elmo", HUB: "tfhub"}
"""Modules that are imported as a whole (`import bilm`)."""
SHARED = frozenset(
    {"allennlp.modules", "allennlp.nn.util", "bio_embeddings", "bio_embeddings.embed", "flair.embeddings"}
    | {"flair.embeddings.legacy", "flair.embeddings.token"}
)
"""Modules that have much besides ELMo: what else a script imports from them stays, and they are not replaced as a whole."""
PACKAGES = frozenset({"allennlp", "allennlp_models", "bilm", "bio_embeddings", "elmoformanylangs", "simple_elmo"})
"""Packages that are no longer maintained: whatever a script still uses of them is listed."""
ROOTS = PACKAGES | {"flair"}
"""Packages whose uses may have a replacement."""
_WORDS = "polyseme.load(...).words(text) splits a text into words"
ADVICE = {
    "bilm.training": "train with `polyseme pretrain elmo`; polyseme.load reads a checkpoint as it is, without dump_weights",
    "ElmoTokenEmbedder": "use polyseme.compat.allennlp.Elmo with num_output_representations=1",
    "ELMoTokenCharactersIndexer": "batch_to_ids of polyseme.compat.allennlp gives the character ids of sentences",
    "BasicTextFieldEmbedder": "call polyseme.compat.allennlp.Elmo with the ids of batch_to_ids",
    "TextFieldEmbedder": "call polyseme.compat.allennlp.Elmo with the ids of batch_to_ids",
    "_ElmoCharacterEncoder": "layer 0 of polyseme.load(...).embed(sentences) is its output",
    "get_text_field_mask": "Elmo of polyseme.compat.allennlp returns the mask of the words",
    "WordTokenizer": _WORDS,
    "SpacyTokenizer": _WORDS,
    "SpacyWordSplitter": _WORDS,
    "sort_batch_by_length": "torch.nn.utils.rnn.pack_padded_sequence sorts with enforce_sorted=False",
}
"""Modules and classes without a replacement, and what to do instead."""
SESSIONS = {
    "placeholder": "there are no placeholders: call the model with the ids or texts themselves",
    "Session": "there is no session: the model computes at once",
    "InteractiveSession": "there is no session: the model computes at once",
    "MonitoredSession": "there is no session: the model computes at once",
    "global_variables_initializer": "nothing is initialised: remove it",
    "tables_initializer": "nothing is initialised: remove it",
    "reset_default_graph": "there is no graph: remove it",
}
"""Calls of TensorFlow 1 around bilm-tf and TensorFlow Hub, and what to do with them."""
