"""Takes names of this machine out of what is kept: folders, host, user."""


def replacer(pairs):
    """A function that rewrites a line; pairs are (found, replacement), the longest goes first."""
    ordered = sorted(((found, other) for found, other in pairs if found), key=lambda pair: -len(pair[0]))

    def text(line):
        for found, other in ordered:
            line = line.replace(found, other)
        return line

    return text
