"""What every client writes: record i of a codec has the key "CODEC-i" and a value that compresses well."""


def records(codec, count):
    for i in range(count):
        yield f"{codec}-{i}".encode(), (f"{codec}-{i} " + "all work and no play " * 20).encode()


def show(offset, key, value):
    """One line a record, as the runner reads it: offset, key and value, split by tabs."""
    print(offset, key.decode(), value.decode(), sep="\t")
