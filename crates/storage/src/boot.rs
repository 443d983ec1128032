//! What is known of the machine's past when directories are used again.

/// Whether the machine has been up since directories were used last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boot {
    /// It has: nothing that was written is missing.
    Same,
    /// It was restarted since a broker of this kind used them: what was not synced may be missing.
    Another,
    /// Nobody knows, nor who used them last.
    Unknown,
}
