"""Tests of what a server does and tells about itself: samples, checks."""
