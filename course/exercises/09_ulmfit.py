"""Exercises of chapter 9. Write the three functions, then check them:

python -m pytest course/exercises/check_09.py
"""

from __future__ import annotations


def layer_rates(groups: list[str], rate: float, decay: float = 2.6) -> dict[str, float]:
    """Return the learning rate of each layer group. `groups` goes from the bottom to the top.

    The top group has `rate`; each group below has the rate of the one above, divided by `decay`.
    """
    raise NotImplementedError("layer_rates")


def trained_groups(groups: list[str], epoch: int) -> list[str]:
    """Return the groups that train in an epoch of gradual unfreezing, from the bottom to the top.

    `groups` goes from the bottom to the top. In epoch 0 only the top one trains; each epoch unfreezes one more, until
    all train. Groups that were unfrozen keep training.
    """
    raise NotImplementedError("trained_groups")


def ideal_perplexity(things: int, opinions: int, *, agree: bool) -> float:
    """Return the best possible perplexity on reviews as those of the chapter.

    A review names all `things` in random order, each as `OPINION THING ,`, so it has 3 * things words. There are
    `opinions` good opinion words and as many bad ones, all equally probable. With `agree` the model knows that all
    opinions of a review are on one side, each side with probability 1/2. Without it, the model expects each of the 2 *
    opinions words, each time anew.

    First find the probability of a whole review: which order of the things, which opinions? A comma is no surprise.
    """
    raise NotImplementedError("ideal_perplexity")
