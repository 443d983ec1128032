//! The library of the package that holds rskafka's tests: only the tests count.
