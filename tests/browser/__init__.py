"""Tests of the console in a real Chromium (console spec, section 3), which `.ci/run` installs."""
