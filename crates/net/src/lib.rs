//! Frames, listeners, connections, and a client.
