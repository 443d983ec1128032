"""What every client writes: record i of a codec has the key "CODEC-i" and a value that compresses well. And what every
member of a group prints."""

import signal


def records(codec, count):
    for i in range(count):
        yield f"{codec}-{i}".encode(), (f"{codec}-{i} " + "all work and no play " * 20).encode()


def show(offset, key, value):
    """One line a record, as the runner reads it: offset, key and value, split by tabs."""
    print(offset, key.decode(), value.decode(), sep="\t")


class Stop:
    """True once the process was asked to end."""

    def __init__(self):
        self.asked = False
        signal.signal(signal.SIGTERM, self.ask)

    def ask(self, *_):
        self.asked = True

    def __bool__(self):
        return self.asked


def session_ms(instance):
    """How long a member may be silent: a static one is to be started again meanwhile."""
    return 30000 if instance else 6000


def read(partition, offset):
    print("read", partition, offset, sep="\t", flush=True)


def committed(partition, offset):
    print("committed", partition, offset, sep="\t", flush=True)


def failed(error):
    """What was read since the last commit may be read again, by anybody."""
    print("failed", error, sep="\t", flush=True)
