"""Run a script in several processes on this machine: ``launch``, ``prepare``, ``torchrun``, ``LaunchResult``.

``work_in_temporary_folder`` is for the scripts that a notebook writes.

``torch.distributed.elastic.multiprocessing.start_processes`` was tried instead. It begins two ranks as fast (0.5 s with
either), but fails 9 of the 18 tests of ``launch``: the other ranks are ended the moment one fails and never report that
they lost their partner or could not meet (5), what a rank has started is left running (3), and so are the ranks when
their starter is killed (1). It also replaces the notebook's handlers of four signals, Ctrl-C among them.
"""

from .launch import launch as launch
from .launch import torchrun as torchrun
from .launch import work_in_temporary_folder as work_in_temporary_folder
from .report import LaunchResult as LaunchResult
from .workers import prepare as prepare
