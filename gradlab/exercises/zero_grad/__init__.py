"""The exercises of notebook 04."""

from __future__ import annotations

from .trains import Trains
from .two_players import TwoPlayers
from .uncleared import Uncleared

EXERCISES = (Uncleared, TwoPlayers, Trains)
