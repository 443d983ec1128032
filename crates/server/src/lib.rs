//! Sockets, threads and HTTP around the node.
