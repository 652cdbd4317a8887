"""`polyseme migrate`: imports change and nothing else; what is left to do by hand is listed."""

from __future__ import annotations

from pathlib import Path

import pytest

import polyseme
from polyseme.base.errors import FormatError, UsageError
from polyseme.compat.migrate import migrate

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


def test_tensorflow_itself_is_listed(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text("import tensorflow as tf\nfrom bilm import Batcher\n")
    assert polyseme.migrate(path).notes == [
        "line 1: import tensorflow: polyseme does not need it; remove it unless other code does"
    ]
    path.write_text("import tensorflow as tf\n")
    assert polyseme.migrate(path).notes == []


def test_all_names_of_a_module_are_to_be_named(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text("from allennlp.modules.elmo import *\nfrom allennlp.nn import *\n")
    found = polyseme.migrate(path)
    assert not found.diff and found.notes == [
        "line 1: * of allennlp.modules.elmo does not say which names are used: import them by name from "
        "polyseme.compat.allennlp",
        "line 2: * of allennlp.nn has no replacement",
    ]


def test_a_tokenizer_has_advice(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text("from allennlp.data.tokenizers.word_tokenizer import WordTokenizer\n")
    (note,) = polyseme.migrate(path).notes
    assert note.endswith("has no replacement: polyseme.load(...).words(text) splits a text into words")


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
        "line 1: Embedding of allennlp.modules has no replacement",
        "line 2: get_text_field_mask has no replacement: Elmo of polyseme.compat.allennlp returns the mask of the words",
        "line 3: ElmoTokenEmbedder has no replacement: use polyseme.compat.allennlp.Elmo with num_output_representations=1",
        "line 4: bilm.training has no replacement: train with `polyseme pretrain elmo`; polyseme.load reads a checkpoint as it "
        "is, without dump_weights",
        "line 5: import allennlp.modules has no replacement: nothing uses allennlp here, so remove it",
    ]


def test_dotted_names_of_a_package(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text(
        "import allennlp, flair\n"
        "import allennlp.modules as modules, bilm as b\n"
        "e = allennlp.modules.elmo.Elmo.from_params(options, weights, 1)\n"
        "m = allennlp.nn.util.get_mask(modules.elmo.batch_to_ids(text)); print(allennlp.__version__)\n"
        "f = flair.embeddings.ELMoEmbeddings(), flair.data.Sentence('a')\n"
        "g = b.data.Batcher('v', 50), b.Batcher, b.training.train\n"
        "h = importlib.import_module('allennlp.modules.elmo')\n",
    )
    found = polyseme.migrate(path, write=True)
    assert path.read_text().splitlines() == [
        "import polyseme.compat.allennlp; import allennlp",
        "import polyseme.compat.flair; import flair",
        "import polyseme.compat.allennlp",
        "from polyseme.compat import bilm as b",
        "e = polyseme.compat.allennlp.Elmo.from_params(options, weights, 1)",
        "m = allennlp.nn.util.get_mask(polyseme.compat.allennlp.batch_to_ids(text)); print(allennlp.__version__)",
        "f = polyseme.compat.flair.ELMoEmbeddings(), flair.data.Sentence('a')",
        "g = b.Batcher('v', 50), b.Batcher, b.training.train",
        "h = importlib.import_module('allennlp.modules.elmo')",
    ]
    assert found.notes == [
        "line 1: import allennlp stays for the uses that have no replacement: remove it with them",
        "line 4: allennlp.__version__ has no replacement",
        "line 4: allennlp.nn.util.get_mask has no replacement",
        "line 6: bilm.training.train has no replacement: train with `polyseme pretrain elmo`; polyseme.load reads a checkpoint "
        "as it is, without dump_weights",
        "line 7: allennlp.modules.elmo is imported by name: use polyseme.compat.allennlp",
    ]


def test_what_a_newcomer_found_missing(tmp_path: Path) -> None:
    """Imports that stay are listed, though nothing changes."""
    path = tmp_path / "old.py"
    path.write_text(
        "import allennlp\n"
        "from allennlp.data.token_indexers import ELMoTokenCharactersIndexer\n"
        "from allennlp.modules.text_field_embedders import BasicTextFieldEmbedder\n"
        "from allennlp.data import Vocabulary\n",
    )
    found = polyseme.migrate(path)
    assert str(found).splitlines() == [
        f"{path}: nothing to change that has a replacement",
        "left to do by hand:",
        "line 1: import allennlp has no replacement: nothing uses allennlp here, so remove it",
        "line 2: ELMoTokenCharactersIndexer has no replacement: batch_to_ids of polyseme.compat.allennlp gives the character "
        "ids of sentences",
        "line 3: BasicTextFieldEmbedder has no replacement: call polyseme.compat.allennlp.Elmo with the ids of batch_to_ids",
        "line 4: Vocabulary of allennlp.data has no replacement",
    ]
    path.write_text("import allennlp\ne = allennlp.modules.elmo.Elmo('a', 'b', 1)\n")
    assert polyseme.migrate(path, write=True).notes == []
    assert path.read_text() == "import polyseme.compat.allennlp\ne = polyseme.compat.allennlp.Elmo('a', 'b', 1)\n"


def test_an_import_that_may_fail(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text(
        "try:\n    import allennlp\nexcept ImportError:\n    allennlp = None\ne = allennlp.commands.elmo.ElmoEmbedder()\n"
    )
    assert polyseme.migrate(path, write=True).notes == []
    assert path.read_text() == (
        "try:\n"
        "    import polyseme.compat.allennlp\n"
        "except ImportError:\n"
        "    allennlp = None\n"
        "e = polyseme.compat.allennlp.ElmoEmbedder()\n"
    )
    path.write_text("import allennlp\nallennlp = allennlp.data\n")
    assert "remove it" not in str(polyseme.migrate(path))  # it is used


def test_names_of_a_module_under_another_name(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text("import allennlp.modules.elmo as old\ne = old.Elmo(1); i = old._make_bos_eos(2)\nprint(old)\n")
    found = polyseme.migrate(path, write=True)
    assert path.read_text().startswith("import polyseme.compat.allennlp as old\ne = old.Elmo(1); i = old._make_bos_eos(2)\n")
    assert found.notes == ["line 2: allennlp.modules.elmo._make_bos_eos has no replacement"]


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
    text = tmp_path / "corpus.txt"
    text.write_text("The bank of the river.\n")
    with pytest.raises(FormatError, match=r"corpus\.txt: is not Python 3 .*; give a Python script or notebook"):
        polyseme.migrate(text)
    with pytest.raises(UsageError, match=r"is a folder; give a Python script or notebook"):
        polyseme.migrate(tmp_path)
    notebook = tmp_path / "old.ipynb"
    notebook.write_text("{}")
    with pytest.raises(FormatError, match="is not a script or notebook"):
        polyseme.migrate(notebook)


@pytest.mark.parametrize("encoding", ["gbk", "utf-8-sig"])
def test_the_encoding_of_a_script_stays(tmp_path: Path, encoding: str) -> None:
    path, coding = tmp_path / "old.py", "# -*- coding: gbk -*-\r\n" if encoding == "gbk" else ""
    script = "from {}simple_elmo import ElmoModel\r\nword = '银行'\r\n"
    path.write_bytes((coding + script.format("")).encode(encoding))
    assert migrate(path, write=True).written
    assert path.read_bytes() == (coding + script.format("polyseme.compat.")).encode(encoding)
    path.write_bytes("word = '银行'\n".encode("gbk"))
    with pytest.raises(FormatError, match="in UTF-8, or in the encoding that its line `# -\\*- coding: NAME -\\*-` names"):
        migrate(path)
