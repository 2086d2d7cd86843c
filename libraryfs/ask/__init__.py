"""Questions over a path: request → retrieval → prompt → answer → grounding and shape."""
