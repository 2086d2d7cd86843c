"""Sources → snapshot: a folder or `.jsonl` rows come in, `.jsonl` rows go out."""
