"""Console tests in a real Chromium (docs/spec/console.md §4), which `.ci/run` installs."""
