//! Bytes with holes, kept in pages, so that a preallocated file costs nothing and a copy is cheap.

use std::collections::BTreeMap;
use std::sync::Arc;

const PAGE: usize = 4096;

/// The content of a file in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct SparseBytes {
    len: u64,
    pages: BTreeMap<u64, Arc<[u8; PAGE]>>,
}

impl SparseBytes {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Reads into `buf` from `at`; the number of bytes read, fewer than asked at the end.
    pub(super) fn read_at(&self, buf: &mut [u8], at: u64) -> usize {
        let count = buf.len().min(usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX));
        let mut position = at;
        let mut rest = buf.get_mut(..count).unwrap_or_default();
        while !rest.is_empty() {
            let (page, within, now) = place(position, rest.len());
            let (head, tail) = rest.split_at_mut(now);
            match self.pages.get(&page).and_then(|bytes| bytes.get(within..within + now)) {
                Some(bytes) => head.copy_from_slice(bytes),
                None => head.fill(0),
            }
            position += now as u64;
            rest = tail;
        }
        count
    }

    /// Writes `bytes` at `at`, extending the content (by a hole, if `at` is past the end).
    pub(super) fn write_at(&mut self, bytes: &[u8], at: u64) {
        let mut position = at;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (page, within, now) = place(position, rest.len());
            let (head, tail) = rest.split_at(now);
            let target = self.pages.entry(page).or_insert_with(|| Arc::new([0; PAGE]));
            if let Some(target) = Arc::make_mut(target).get_mut(within..within + now) {
                target.copy_from_slice(head);
            }
            position += now as u64;
            rest = tail;
        }
        if !bytes.is_empty() {
            self.len = self.len.max(position);
        }
    }

    /// Cuts the content, or extends it by a hole.
    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            let (page, within, _) = place(len, 1);
            self.pages.split_off(&(page + 1));
            if let Some(bytes) = self.pages.get_mut(&page)
                && let Some(cut) = Arc::make_mut(bytes).get_mut(within..)
            {
                cut.fill(0);
            }
        }
        self.len = len;
    }
}

/// The page of `position`, the place within it, and how many of `wanted` bytes it holds from there.
fn place(position: u64, wanted: usize) -> (u64, usize, usize) {
    let within = (position % PAGE as u64) as usize;
    (position / PAGE as u64, within, wanted.min(PAGE - within))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sparse_bytes_behave_like_a_plain_vector(
            steps in prop::collection::vec((any::<bool>(), 0u64..20_000, 0usize..6000, any::<u8>()), 0..20),
        ) {
            let mut sparse = SparseBytes::default();
            let mut plain: Vec<u8> = Vec::new();
            for (cut, at, count, byte) in steps {
                if cut {
                    sparse.set_len(at);
                    plain.resize(at as usize, 0);
                } else {
                    sparse.write_at(&vec![byte; count], at);
                    if count > 0 && plain.len() < at as usize + count {
                        plain.resize(at as usize + count, 0);
                    }
                    if count > 0 {
                        plain[at as usize..at as usize + count].fill(byte);
                    }
                }
                prop_assert_eq!(sparse.len(), plain.len() as u64);
                let mut read = vec![9; plain.len() + 10];
                prop_assert_eq!(sparse.read_at(&mut read, 0), plain.len());
                prop_assert_eq!(&read[..plain.len()], &plain[..]);
            }
        }
    }
}
