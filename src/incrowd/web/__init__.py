"""The web interface on this machine: thin pages over the same objects as everything else; no arithmetic."""
