"""Programs that make the calls of public scripts, each with the repository and the file that it follows.

They are written anew, with small models: the same calls, in the same order, on the same kinds of arguments. Those of bilm-tf
and TensorFlow Hub have no session. Each leaves its arrays in `result`.
"""

from __future__ import annotations

TEXT = [["the", "bank", "of", "the", "river", "."], ["Another", "."], ["today", "naïve", "今天", "bank"]]
WITH_EMPTY = [TEXT[0], [], *TEXT[1:]]
SCRIPTS: dict[str, tuple[str, str]] = {}
"""By name: where the calls are from, and the program."""

SCRIPTS["allennlp-embedder"] = (
    "allenai/allennlp: tutorials/how_to/elmo.md",
    """
from allennlp.commands.elmo import ElmoEmbedder

ee = ElmoEmbedder(OPTIONS, WEIGHTS)
by_characters = ee.embed_sentence("bank .")
embeddings = ee.embed_sentence("the bank of the river .".split())
result = [by_characters, embeddings]
""",
)
SCRIPTS["allennlp-elmo"] = (
    "yangwei-nlp/PyTorch-Tutorial: net4torch/ELMo.py",
    """
from allennlp.modules.elmo import Elmo, batch_to_ids

elmo = Elmo(OPTIONS, WEIGHTS, 2, dropout=0)
character_ids = batch_to_ids(WITH_EMPTY)
embeddings = elmo(character_ids)
result = [each.detach().numpy() for each in embeddings["elmo_representations"]] + [embeddings["mask"].numpy()]
""",
)
SCRIPTS["allennlp-crf-features"] = (
    "allanj/pytorch_neural_crf: preprocess/get_elmo_vec.py",
    """
import numpy as np
from allennlp.commands.elmo import ElmoEmbedder

def parse_sentence(elmo_vecs, mode="average"):
    if mode == "average":
        return np.average(elmo_vecs, 0)
    elif mode == "weighted_average":
        return np.swapaxes(elmo_vecs, 0, 1)
    return elmo_vecs[-1, :, :]

def load_elmo(cuda_device: int) -> ElmoEmbedder:
    return ElmoEmbedder(options_file=OPTIONS, weight_file=WEIGHTS, cuda_device=cuda_device)

elmo = load_elmo(-1)
modes = ["average", "weighted_average", "last"]
result = [parse_sentence(elmo.embed_sentence(words), mode) for words, mode in zip(TEXT, modes)]
for vectors in elmo.embed_sentences(TEXT, batch_size=2):
    result.append(parse_sentence(vectors))
""",
)
SCRIPTS["allennlp-cache"] = (
    "UKPLab/elmo-bilstm-cnn-crf: neuralnets/ELMoWordEmbeddings.py",
    """
import numpy as np
from allennlp.commands.elmo import ElmoEmbedder, DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE

class WordEmbeddings:
    def __init__(self, options_file=DEFAULT_OPTIONS_FILE, weight_file=DEFAULT_WEIGHT_FILE, cuda_device=-1):
        self.cache, self.files = {}, (options_file, weight_file, cuda_device)

    def add_to_cache(self, sentences):
        elmo = ElmoEmbedder(*self.files)
        for idx, embedding in enumerate(elmo.embed_sentences(sentences)):
            self.cache[tuple(sentences[idx])] = embedding

    def average(self, sentence):
        return np.average(self.cache[tuple(sentence)], axis=0).astype(np.float32)

embeddings = WordEmbeddings(OPTIONS, WEIGHTS)
embeddings.add_to_cache(TEXT)
result = [embeddings.average(sentence) for sentence in TEXT]
""",
)
SCRIPTS["allennlp-batches"] = (
    "beinborn/brain-lang: computational_model/load_representations.py",
    """
from allennlp.commands.elmo import ElmoEmbedder

elmo = ElmoEmbedder(OPTIONS, WEIGHTS)

def elmo_embed(sentences):
    return elmo.embed_batch(sentences)

result = elmo_embed(TEXT) + elmo_embed([[]]) + elmo_embed(WITH_EMPTY)
""",
)
SCRIPTS["allennlp-characters"] = (
    "Aditi138/project747: test_scripts/elmo_minimum_working.py",
    """
from allennlp.modules.elmo import Elmo
from allennlp.data.token_indexers.elmo_indexer import ELMoCharacterMapper
import torch
import numpy as np

ids = ELMoCharacterMapper.convert_word_to_char_ids("naïve")
a = torch.autograd.Variable(torch.LongTensor(np.reshape(ids, [1, 1, 50])))
elmo_instance = Elmo(OPTIONS, WEIGHTS, 1).eval()
found = elmo_instance(a)
result = [found["elmo_representations"][0].detach().numpy(), found["mask"].numpy()]
""",
)
SCRIPTS["allennlp-subclass"] = (
    "sz128/slot_filling_and_intent_detection_of_SLU: models/fast_elmo.py",
    """
from allennlp.modules.elmo import Elmo, batch_to_ids
from allennlp.nn.util import remove_sentence_boundaries

class FastElmo(Elmo):
    def forward(self, inputs, word_inputs=None):
        assert word_inputs is None and not self._has_cached_vocab
        bilm_output = self._elmo_lstm(inputs, word_inputs)
        layers, mask_with_ends = [layer.detach() for layer in bilm_output["activations"]], bilm_output["mask"]
        representations = []
        for i in range(len(self._scalar_mixes)):
            with_ends = getattr(self, "scalar_mix_{}".format(i))(layers, mask_with_ends)
            without, mask = remove_sentence_boundaries(with_ends, mask_with_ends)
            representations.append(self._dropout(without))
        return {"elmo_representations": representations, "mask": mask}

found = FastElmo(OPTIONS, WEIGHTS, 2, dropout=0)(batch_to_ids(WITH_EMPTY))
result = [each.detach().numpy() for each in found["elmo_representations"]] + [found["mask"].numpy()]
""",
)
SCRIPTS["allennlp-tagger"] = (
    "sz128/slot_filling_and_intent_detection_of_SLU: models/slot_tagger.py",
    """
import torch
from torch import nn
from torch.nn.utils import rnn
from allennlp.modules import elmo

class Tagger(nn.Module):
    def __init__(self, elmo_model):
        super().__init__()
        self.elmo_model = elmo_model
        self.lstm = nn.LSTM(self.elmo_model.get_output_dim(), 8, bidirectional=True, batch_first=True)
        self.hidden2tag = nn.Linear(16, 3)

    def forward(self, sentences, lengths):
        self.seen = self.elmo_model(sentences)["elmo_representations"][0]
        packed, _ = self.lstm(rnn.pack_padded_sequence(self.seen, lengths, batch_first=True))
        return self.hidden2tag(rnn.pad_packed_sequence(packed, batch_first=True)[0])

torch.manual_seed(0)
ordered = sorted(TEXT, key=len, reverse=True)
lengths = [len(words) for words in ordered]
tagger = Tagger(elmo.Elmo(OPTIONS, WEIGHTS, 1, requires_grad=False, dropout=0.0))
optimizer = torch.optim.SGD([p for p in tagger.parameters() if p.requires_grad], lr=0.1)
losses, seen = [], []
for step in range(5):
    scores = tagger(elmo.batch_to_ids(ordered), lengths)
    loss = nn.functional.cross_entropy(scores.view(-1, 3), torch.zeros(18, dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seen.append(tagger.seen.detach().numpy())
    losses.append(loss.item())
assert losses[-1] < losses[0]
torch.save(tagger.state_dict(), OUT + "/tagger.pt")
tagger.load_state_dict(torch.load(OUT + "/tagger.pt", map_location="cpu"))
result = seen[:1]
""",
)
SCRIPTS["manylangs-features"] = (
    "azeddinebouabdallah/Multimodal-metadata-extraction-from-German-papers: "
    "feature_extraction/context_feature_extraction/main.py",
    """
from elmoformanylangs import Embedder
import numpy as np

class ContextFeatureExtractor:
    def word_embedding(self, words_list):
        embedder = Embedder(MODEL)
        vectors = np.array(embedder.sents2elmo(words_list))
        return vectors.reshape(vectors.shape[0], -1)

result = [ContextFeatureExtractor().word_embedding([[word] for word in TEXT[0]])]
""",
)
SCRIPTS["manylangs-means"] = (
    "wojciech1871/bert_embeddings: preprocessing/models/elmo_model.py",
    """
import elmoformanylangs
import numpy as np

class ElmoModel:
    def __init__(self, path_to_model):
        self._embedder = elmoformanylangs.Embedder(path_to_model)

    def process(self, sentences):
        return [np.mean(embeds, axis=0) for embeds in self._embedder.sents2elmo(sentences)]

result = ElmoModel(MODEL).process(TEXT)
""",
)
SCRIPTS["manylangs-layers"] = (
    "berkay-onder/ELMoForManyLangs: README.md",
    """
from elmoformanylangs import Embedder

e = Embedder(MODEL, batch_size=2)
result = [vectors for layer in (0, 1, 2, -1) for vectors in e.sents2elmo(WITH_EMPTY, output_layer=layer)]
""",
)
SCRIPTS["simple_elmo-vectors"] = (
    "ltgoslo/simple_elmo: simple_elmo/examples/get_elmo_vectors.py",
    """
import numpy as np
from simple_elmo import ElmoModel

model = ElmoModel()
model.load(MODEL, top=False)
elmo_vectors = model.get_elmo_vectors(WITH_EMPTY)
cropped_vectors = []
for vect, sent in zip(elmo_vectors, WITH_EMPTY):
    cropped_vectors.append(vect[: len(sent), :])
query_vec = cropped_vectors[-2][1, :]
result = [elmo_vectors] + [np.array([np.dot(query_vec, w_vec) for w_vec in each]) for each in cropped_vectors]
""",
)
SCRIPTS["simple_elmo-senses"] = (
    "ltgoslo/simple_elmo: simple_elmo/examples/wsd_eval.py",
    """
import numpy as np
from simple_elmo import ElmoModel

def senses(sentences, nums, elmo):
    elmo_vectors = elmo.get_elmo_vectors(sentences)
    x_train = []
    for sentence, nr in zip(range(len(sentences)), nums):
        query_vec = elmo_vectors[sentence, nr, :]
        x_train.append(query_vec / np.linalg.norm(query_vec))
    return x_train

model = ElmoModel()
model.load(MODEL, top=True)
result = [np.array(senses(TEXT, [1, 0, 3], model))]
""",
)
SCRIPTS["simple_elmo-pairs"] = (
    "ltgoslo/simple_elmo: simple_elmo/examples/text_classification.py",
    """
import numpy as np
from simple_elmo import ElmoModel

emb_model = ElmoModel()
emb_model.load(MODEL, top=False, max_batch_size=300)
train0 = emb_model.get_elmo_vector_average(TEXT)
train1 = emb_model.get_elmo_vector_average(TEXT[::-1])
x_train = [[np.dot(t0, t1)] for t0, t1 in zip(train0, train1)]
result = [np.array(x_train)]
""",
)
SCRIPTS["simple_elmo-subclass"] = (
    "kmaltcev/NLP-BiLSTM-model: models/elmo.py",
    """
from simple_elmo import ElmoModel

class Elmo(ElmoModel):
    def __init__(self):
        super().__init__()
        super().load(MODEL, max_batch_size=2)

result = [Elmo().get_elmo_vectors(TEXT, layers="all")]
""",
)
SCRIPTS["bilm-characters"] = (
    "allenai/bilm-tf: usage_character.py",
    """
from bilm import Batcher, BidirectionalLanguageModel, weight_layers

batcher = Batcher(VOCAB, 50)
bilm = BidirectionalLanguageModel(OPTIONS, WEIGHTS)
context_ids = batcher.batch_sentences(WITH_EMPTY[:3])
question_ids = batcher.batch_sentences(WITH_EMPTY[3:])
context_embeddings_op = bilm(context_ids)
question_embeddings_op = bilm(question_ids)
elmo_context_input = weight_layers("input", context_embeddings_op, l2_coef=0.0)
elmo_question_input = weight_layers("input", question_embeddings_op, l2_coef=0.0)
elmo_context_output = weight_layers("output", context_embeddings_op, l2_coef=0.0)
result = [each["weighted_op"] for each in (elmo_context_input, elmo_question_input, elmo_context_output)]
""",
)
SCRIPTS["bilm-tokens"] = (
    "allenai/bilm-tf: usage_token.py",
    """
import os
from bilm import TokenBatcher, BidirectionalLanguageModel, weight_layers, \\
    dump_token_embeddings

all_tokens = set(["<S>", "</S>"])
for sentence in TEXT:
    for token in sentence:
        all_tokens.add(token)
vocab_file = os.path.join(OUT, "vocab_small.txt")
with open(vocab_file, "w", encoding="utf-8") as fout:
    fout.write("\\n".join(all_tokens))
token_embedding_file = os.path.join(OUT, "elmo_token_embeddings.hdf5")
dump_token_embeddings(vocab_file, OPTIONS, WEIGHTS, token_embedding_file)
batcher = TokenBatcher(vocab_file)
bilm = BidirectionalLanguageModel(OPTIONS, WEIGHTS, use_character_inputs=False, embedding_weight_file=token_embedding_file)
ops = bilm(batcher.batch_sentences(TEXT))
result = [weight_layers("input", ops, l2_coef=0.0)["weighted_op"]]
""",
)
SCRIPTS["bilm-cached"] = (
    "allenai/bilm-tf: usage_cached.py",
    """
import os, h5py
from bilm import dump_bilm_embeddings

dataset_file, embedding_file = os.path.join(OUT, "dataset.txt"), os.path.join(OUT, "elmo_embeddings.hdf5")
with open(dataset_file, "w", encoding="utf-8") as fout:
    for sentence in TEXT:
        fout.write(" ".join(sentence) + "\\n")
dump_bilm_embeddings(VOCAB, dataset_file, OPTIONS, WEIGHTS, embedding_file)
with h5py.File(embedding_file, "r") as fin:
    result = [fin["1"][...]]
""",
)
SCRIPTS["tfhub-mean"] = (
    "YatinGupta777/Comparing-different-Word-Embeddings: elmo.py",
    """
import tensorflow_hub as hub

elmo = hub.Module(MODEL, trainable=True)  # it was https://tfhub.dev/google/elmo/2

def elmo_vectors(x):
    embeddings = elmo(x, signature="default", as_dict=True)["elmo"]
    return embeddings.mean(1)

result = [elmo_vectors(["the bank of the river .", "the bank of the moon ."]).numpy()]
""",
)
SCRIPTS["tfhub-tokens"] = (
    "tracy-talent/tensorflow-tutorials: src/tfhub.py",
    """
import tensorflow_hub as hub

elmo = hub.Module(MODEL, trainable=False)
tokens_input = [["the", "bank", "of", "the", "river", "."], ["Another", ".", "", "", "", ""]]
tokens_length = [6, 2]
embeddings = elmo(inputs={"tokens": tokens_input, "sequence_len": tokens_length}, signature="tokens", as_dict=True)["elmo"]
result = [embeddings.numpy()]
""",
)
SCRIPTS["tfhub-layers"] = (
    "luanyi/DyGIE: generate_elmo.py",
    """
import numpy as np
import tensorflow_hub as hub

elmo = hub.Module(MODEL, trainable=False)
result = []
for sentence in WITH_EMPTY:
    found = elmo(inputs={"tokens": [sentence], "sequence_len": [len(sentence)]}, signature="tokens", as_dict=True)
    word_emb = found["word_emb"].numpy()
    layers = [np.concatenate([word_emb, word_emb], 2), found["lstm_outputs1"].numpy(), found["lstm_outputs2"].numpy()]
    result.append(np.stack(layers, 3)[0])
""",
)
SCRIPTS["seqvec"] = (
    "JhaKanchan15/PPI_GNN: seqvec_embedding.py",
    """
import torch
from bio_embeddings.embed import SeqVecEmbedder

seq = "MVTYDFGSDEMHD"
embedder = SeqVecEmbedder(warmup_rounds=0, weights_file=WEIGHTS, options_file=OPTIONS)
embedding = embedder.embed(seq)
protein_embd = torch.tensor(embedding).sum(dim=0)
result = [protein_embd.cpu().detach().numpy(), embedder.reduce_per_protein(embedding)]
""",
)
SCRIPTS["seqvec-embedder"] = (
    "mheinzinger/SeqVec: README.md",
    """
from allennlp.commands.elmo import ElmoEmbedder
from pathlib import Path
import torch

model_dir = Path(OPTIONS).parent
seqvec = ElmoEmbedder(model_dir / "options.json", model_dir / "weights.hdf5", cuda_device=-1)
embedding = seqvec.embed_sentence(list("MVTYDFGSDEMHD"))
residue_embd = torch.tensor(embedding).sum(dim=0)
protein_embd = torch.tensor(embedding).sum(dim=0).mean(dim=0)
result = [residue_embd.numpy(), protein_embd.numpy()]
""",
)
SCRIPTS["flair"] = (
    "flairNLP/flair: resources/docs/embeddings/ELMO_EMBEDDINGS.md",
    """
from flair.embeddings import ELMoEmbeddings
from flair.data import Sentence

embedding = ELMoEmbeddings(options_file=OPTIONS, weight_file=WEIGHTS)
sentence = Sentence("the bank of the river .")
embedding.embed(sentence)
result = [token.embedding.cpu().numpy() for token in sentence]
""",
)
