"""Console tests in a real Chromium browser (docs/spec/console.md §4), which `.ci/run` installs."""
