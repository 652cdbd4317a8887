"""`polyseme migrate`: imports change and nothing else; what is left to do by hand is listed."""

from __future__ import annotations

from pathlib import Path

import pytest

import polyseme
from polyseme.base.errors import FormatError

OLD = '''#!/usr/bin/env python
"""é"""\r
import numpy as np, tensorflow_hub as hub
from allennlp.modules.elmo import Elmo as E, batch_to_ids  # comment
import allennlp.commands.elmo
import bilm.model as m
from flair.embeddings import (ELMoEmbeddings,
    WordEmbeddings as W)
if True: from bilm import Batcher, nothing
ü = "é"; e = allennlp.commands.elmo.ElmoEmbedder(x=allennlp.commands.elmo.DEFAULT_OPTIONS_FILE)
elmo = hub.Module("https://tfhub.dev/google/elmo/2")
from . import allennlp
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())'''
NEW = '''#!/usr/bin/env python
"""é"""\r
import numpy as np
from polyseme.compat import tfhub as hub
from polyseme.compat.allennlp import Elmo as E, batch_to_ids  # comment
import polyseme.compat.allennlp
import polyseme.compat.bilm as m
from flair.embeddings import WordEmbeddings as W
from polyseme.compat.flair import ELMoEmbeddings
if True: from bilm import nothing; from polyseme.compat.bilm import Batcher
ü = "é"; e = polyseme.compat.allennlp.ElmoEmbedder(x=polyseme.compat.allennlp.DEFAULT_OPTIONS_FILE)
elmo = hub.Module("https://tfhub.dev/google/elmo/2")
from . import allennlp
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())'''


def test_only_imports_change(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_bytes(OLD.encode())
    path.chmod(0o755)
    shown = polyseme.migrate(path)
    assert path.read_bytes() == OLD.encode()
    assert not shown.written
    assert polyseme.migrate(path, write=True).written
    assert path.read_bytes() == NEW.encode()
    assert path.stat().st_mode & 0o777 == 0o755
    assert shown.notes == [
        "line 9: nothing of bilm has no replacement",
        "line 13: tf.Session: there is no session: the model computes at once",
        "line 14: sess.run: there is no session: call the model with the data itself",
        "line 14: tf.global_variables_initializer: nothing is initialised: remove it",
    ]
    again = polyseme.migrate(path, write=True)
    assert not again.written
    assert "nothing to change" in str(again)


def test_modules_by_another_name_and_what_has_no_replacement(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text(
        "from allennlp.modules import elmo, Embedding\n"
        "from allennlp.nn.util import remove_sentence_boundaries, get_text_field_mask\n"
        "from allennlp.modules.token_embedders import ElmoTokenEmbedder\n"
        "from bilm.training import train, load_vocab\n"
        "import allennlp.modules\n",
    )
    found = polyseme.migrate(path, write=True)
    assert path.read_text().splitlines() == [
        "from allennlp.modules import Embedding",
        "from polyseme.compat import allennlp as elmo",
        "from allennlp.nn.util import get_text_field_mask",
        "from polyseme.compat.allennlp import remove_sentence_boundaries",
        "from allennlp.modules.token_embedders import ElmoTokenEmbedder",
        "from bilm.training import train, load_vocab",
        "import allennlp.modules",
    ]
    assert found.notes == [
        "line 3: ElmoTokenEmbedder has no replacement: use polyseme.compat.allennlp.Elmo with num_output_representations=1",
        "line 4: bilm.training has no replacement: train with `polyseme pretrain elmo`; polyseme.load reads a checkpoint as it "
        "is, without dump_weights",
    ]


def test_other_modules_of_the_hub_stay(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text('import tensorflow_hub\nx = "https://tfhub.dev/google/elmo/2"\ny = "https://tfhub.dev/google/nnlm/1"\n')
    found = polyseme.migrate(path)
    assert not found.diff
    assert "line 1: tensorflow_hub stays, because the script loads other modules too" in found.notes[0]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text("import bilm\nprint 'hello'\n")
    with pytest.raises(FormatError, match=r"old\.py:2: is not Python 3"):
        polyseme.migrate(path)
    notebook = tmp_path / "old.ipynb"
    notebook.write_text("{}")
    with pytest.raises(FormatError, match="is not a script or notebook"):
        polyseme.migrate(notebook)
