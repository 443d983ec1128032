//! The cluster store: ZooKeeper's tree behind one trait.
