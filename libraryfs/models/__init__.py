"""Embedding and language models: two small protocols, and the processes and endpoints behind them."""
