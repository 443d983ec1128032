//! What is produced: random letters, lines of a file in random order, or numbers that count up.

use std::path::Path;

use crate::error::VerbError;

/// The most that a file of payloads may hold.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Where values come from.
#[derive(Debug)]
pub(super) enum Payload {
    /// So many random letters.
    Random(usize),
    /// One of these.
    Lines(Vec<Vec<u8>>),
    /// The number of the record.
    Monotonic,
}

impl Payload {
    /// The lines of a file, parted by `delimiter`, in which `\n` stands for a new line.
    ///
    /// # Errors
    /// If the file cannot be read, or is empty.
    pub(super) fn of_file(path: &Path, delimiter: &str) -> Result<Self, VerbError> {
        let size = std::fs::metadata(path).map_err(|error| VerbError::file(path, error))?.len();
        let refuse = |text: &str| Err(VerbError::Usage(format!("{}: {text}", path.display())));
        if size > MAX_FILE_BYTES {
            return refuse("a file of payloads may have 1 GiB at most");
        }
        let text = std::fs::read_to_string(path).map_err(|error| VerbError::file(path, error))?;
        let delimiter = delimiter.replace("\\n", "\n");
        if delimiter.is_empty() {
            return Err(VerbError::Usage("--payload-delimiter must not be empty".to_owned()));
        }
        let lines: Vec<Vec<u8>> = text
            .split(&delimiter)
            .filter(|line| !line.is_empty())
            .map(|line| line.as_bytes().to_vec())
            .collect();
        if lines.is_empty() { refuse("there is no payload in it") } else { Ok(Self::Lines(lines)) }
    }

    /// The value of record `number`, counted from 0, written over `value`.
    pub(super) fn write(&self, number: u64, random: &mut Random, value: &mut Vec<u8>) {
        value.clear();
        match self {
            Self::Random(size) => {
                while value.len() < *size {
                    // Five bits a letter; six letters have no twin below 32, which nobody minds.
                    let bits = random.next();
                    let letters = (0..12).map(|at| b'A' + ((bits >> (5 * at)) & 31) as u8 % 26);
                    let missing = *size - value.len();
                    value.extend(letters.take(missing));
                }
            }
            Self::Lines(lines) => {
                let at = random.next() % u64::try_from(lines.len()).unwrap_or(1).max(1);
                let line = usize::try_from(at).ok().and_then(|at| lines.get(at));
                value.extend(line.into_iter().flatten());
            }
            Self::Monotonic => value.extend(number.to_string().into_bytes()),
        }
    }
}

/// Random bits that are the same in every run (xorshift).
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Begins.
    pub(super) fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(payload: &Payload, number: u64, random: &mut Random) -> Vec<u8> {
        let mut value = b"old".to_vec();
        payload.write(number, random, &mut value);
        value
    }

    #[test]
    fn random_values_are_letters_of_the_wanted_number() {
        let mut random = Random::new();
        for size in [0, 1, 12, 13, 100] {
            let value = value(&Payload::Random(size), 0, &mut random);
            assert!(value.len() == size && value.iter().all(u8::is_ascii_uppercase), "{size}");
        }
        let payload = Payload::Random(50);
        assert_ne!(value(&payload, 0, &mut random), value(&payload, 0, &mut random));
    }

    #[test]
    fn lines_of_a_file_come_in_random_order_and_numbers_in_theirs() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("payloads");
        std::fs::write(&path, "a|b||c").unwrap();
        let payload = Payload::of_file(&path, "|").unwrap();
        let mut random = Random::new();
        let mut seen: Vec<Vec<u8>> = (0..100).map(|number| value(&payload, number, &mut random)).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen, [b"a", b"b", b"c"]);
        assert_eq!(value(&Payload::Monotonic, 17, &mut random), b"17");
        std::fs::write(&path, "\n").unwrap();
        assert!(Payload::of_file(&path, "\\n").is_err());
    }
}
