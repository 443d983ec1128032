//! Pure decisions of the broker.
