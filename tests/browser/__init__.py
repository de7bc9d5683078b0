"""Tests of the console in a real Chromium (docs/spec/console.md §3), which `.ci/run` installs."""
