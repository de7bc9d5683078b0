"""Tests of OAuth."""
