"""Takes names of this machine out of what is kept: folders, host, user."""

REPLACED = []


def configure(pairs):
    """Sets what is replaced, as (found, replacement), the longest first."""
    REPLACED[:] = sorted(([a, b] for a, b in pairs if a), key=lambda pair: -len(pair[0]))


def text(line):
    """The line without this machine's names."""
    for found, replacement in REPLACED:
        line = line.replace(found, replacement)
    return line
