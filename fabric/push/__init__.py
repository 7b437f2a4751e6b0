"""Change sets onto devices, transactionally: stage, commit under a timer, verify, confirm or revert."""

from fabric.push.fanout import Stop
from fabric.push.jobs import STOPPED, Compare, DeviceJob, PushOptions, SessionFactory
from fabric.push.journal import Entry, private_folder
from fabric.push.leftover import journal_of, left_behind
from fabric.push.lock import in_flux, in_our_time
from fabric.push.provision import push_all, rehearse_all
from fabric.push.reading import Reading, fetch_all, run_all
from fabric.push.session import DeviceSession, StagedChange
from fabric.push.sessions import session_factory

__all__ = (
    "STOPPED",
    "Compare",
    "DeviceJob",
    "DeviceSession",
    "Entry",
    "PushOptions",
    "Reading",
    "SessionFactory",
    "StagedChange",
    "Stop",
    "fetch_all",
    "in_flux",
    "in_our_time",
    "journal_of",
    "left_behind",
    "private_folder",
    "push_all",
    "rehearse_all",
    "run_all",
    "session_factory",
)
