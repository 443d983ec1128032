//! What each fuzz target does with its input: every parser that reads bytes from outside.
//!
//! A body panics when the parser breaks a promise; that the parser itself may not panic, hang or take much
//! memory goes without saying. The targets in `fuzz/` call these functions with what the fuzzer finds, the
//! property tests at the end of each file with random bytes, with damaged good input, and with the corpus.

pub mod files;
pub mod internal;
pub mod protocol;
pub mod records;

/// A target's name and body.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, by the names of their folders in `fuzz/corpus`.
pub const TARGETS: [Target; 8] = [
    ("frames", protocol::frames),
    ("requests", protocol::requests),
    ("batches", records::batches),
    ("records", records::records),
    ("checkpoints", files::checkpoints),
    ("indexes", files::indexes),
    ("snapshots", files::snapshots),
    ("offsets_records", internal::offsets_records),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    #[test]
    fn the_corpus_of_every_target_goes_through() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        for (name, body) in TARGETS {
            let inputs: Vec<_> = corpus.join(name).read_dir().unwrap().collect();
            assert!(!inputs.is_empty(), "no corpus for {name}");
            for input in inputs {
                body(&std::fs::read(input.unwrap().path()).unwrap());
            }
        }
    }

    proptest! {
        #[test]
        fn random_bytes_go_through(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            for (_, body) in TARGETS {
                body(&bytes);
            }
        }

        #[test]
        fn damaged_corpus_goes_through(seed in any::<u64>(), at in any::<usize>(), byte in any::<u8>()) {
            let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
            for (name, body) in TARGETS {
                let mut inputs: Vec<_> =
                    corpus.join(name).read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
                inputs.sort();
                let input = &inputs[usize::try_from(seed % inputs.len() as u64).unwrap()];
                let mut bytes = std::fs::read(input).unwrap();
                if !bytes.is_empty() {
                    let at = at % bytes.len();
                    bytes[at] = byte;
                    body(&bytes);
                    bytes.truncate(at);
                }
                body(&bytes);
            }
        }
    }
}
