"""An eval set run against the library: parsed, asked, scored, compared with earlier runs, and reported."""
