//! The broker as a synchronous library.
