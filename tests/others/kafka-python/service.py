"""Stands where kafka-python's tests keep what starts brokers: that file is not published, and the broker runs already."""


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def stop(self):
        pass

    def dump_logs(self):
        pass

    def wait_for(self, _pattern, timeout=None):
        return True


class SpawnedService:
    def __init__(self, *_arguments):
        raise RuntimeError("no broker is started here")
