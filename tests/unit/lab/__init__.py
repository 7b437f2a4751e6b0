"""Tests of the lab without sockets."""
