//! Reading Java properties files such as `server.properties`: `#` and `!` comments, lines continued by `\`,
//! the escapes `\t \n \r \f \uXXXX`, keys that end at `=`, `:` or a blank. Bytes are UTF-8, or Latin-1 where
//! they are no UTF-8. Of several lines with one key the last wins; line numbers are kept for messages.

use std::collections::BTreeMap;

/// One key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The value, escapes resolved, not trimmed at its end.
    pub value: String,
    /// The line on which the key stands, from 1; `None` for a value that came from elsewhere.
    pub line: Option<usize>,
}

/// The keys of a properties file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    entries: BTreeMap<String, Entry>,
    duplicates: Vec<Duplicate>,
}

/// A key that a file sets more than once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The key.
    pub key: String,
    /// The line that is ignored.
    pub ignored: usize,
    /// The line that wins.
    pub wins: usize,
}

/// A properties file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: \\u must be followed by four hexadecimal digits")]
pub struct PropertiesError {
    /// The line, from 1.
    pub line: usize,
}

impl Properties {
    /// Parses a whole file.
    ///
    /// # Errors
    /// A malformed `\uXXXX`; everything else has a meaning.
    pub fn parse(bytes: &[u8]) -> Result<Self, PropertiesError> {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.iter().copied().map(char::from).collect(),
        };
        let mut properties = Self::default();
        for (line, logical) in logical_lines(&text) {
            let (key, value) = split_key(&logical);
            let at_line = |_| PropertiesError { line };
            let key = unescape(key).map_err(at_line)?;
            let value = unescape(value).map_err(at_line)?;
            let earlier = properties.entries.insert(key.clone(), Entry { value, line: Some(line) });
            if let Some(ignored) = earlier.and_then(|entry| entry.line) {
                properties.duplicates.push(Duplicate { key, ignored, wins: line });
            }
        }
        Ok(properties)
    }

    /// Sets a key that does not come from the file, as `--override` does.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.entries.insert(key.into(), Entry { value: value.into(), line: None });
    }

    /// Takes a key away.
    pub fn remove(&mut self, key: &str) {
        self.entries.remove(key);
    }

    /// The entry of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// All keys in name order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(key, entry)| (key.as_str(), entry))
    }

    /// The keys that the file sets more than once, in the order of their lines.
    #[must_use]
    pub fn duplicates(&self) -> &[Duplicate] {
        &self.duplicates
    }
}

const BLANK: [char; 3] = [' ', '\t', '\x0c'];

/// Lines that carry a key, continued ones joined, each with the number of its first line.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let unified = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines = unified.split('\n').enumerate();
    let mut result = Vec::new();
    while let Some((index, natural)) = lines.next() {
        let natural = natural.trim_start_matches(BLANK);
        if natural.is_empty() || natural.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = String::new();
        let mut rest = natural;
        while let Some(kept) = without_continuation(rest) {
            logical.push_str(kept);
            rest = lines.next().map_or("", |(_, next)| next.trim_start_matches(BLANK));
        }
        logical.push_str(rest);
        if !logical.is_empty() {
            result.push((index + 1, logical));
        }
    }
    result
}

/// The line without its last `\`, if that one continues the line (an odd number of them at its end).
fn without_continuation(line: &str) -> Option<&str> {
    let backslashes = line.chars().rev().take_while(|c| *c == '\\').count();
    if backslashes % 2 == 1 { line.strip_suffix('\\') } else { None }
}

/// Cuts a logical line into key and value, both still escaped.
fn split_key(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let ends_key = |(_, c): &(usize, char)| {
        let ends = !escaped && (*c == '=' || *c == ':' || BLANK.contains(c));
        escaped = *c == '\\' && !escaped;
        ends
    };
    let Some((end, _)) = line.char_indices().find(ends_key) else {
        return (line, "");
    };
    let (key, rest) = line.split_at(end);
    let rest = rest.trim_start_matches(BLANK);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, value.trim_start_matches(BLANK))
}

struct BadEscape;

fn unescape(text: &str) -> Result<String, BadEscape> {
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let resolved = match c {
            '\\' => match chars.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\x0c',
                Some('u') => {
                    units.push(hex_unit(&mut chars)?);
                    continue;
                }
                Some(other) => other,
                None => break,
            },
            plain => plain,
        };
        units.extend_from_slice(resolved.encode_utf16(&mut [0; 2]));
    }
    Ok(String::from_utf16_lossy(&units))
}

/// The UTF-16 unit that the next four characters give in hexadecimal.
fn hex_unit(chars: &mut std::str::Chars<'_>) -> Result<u16, BadEscape> {
    let digits: String = chars.by_ref().take(4).collect();
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(BadEscape);
    }
    u16::from_str_radix(&digits, 16).map_err(|_| BadEscape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value_of(file: &str, key: &str) -> Option<String> {
        Properties::parse(file.as_bytes()).unwrap().get(key).map(|entry| entry.value.clone())
    }

    #[test]
    fn keys_end_at_equals_colon_or_blank() {
        for file in ["k=v", "k:v", "k v", "k = v", "k\t:\tv", "  k  =  v", "k   v"] {
            assert_eq!(value_of(file, "k").as_deref(), Some("v"), "{file:?}");
        }
        assert_eq!(value_of("k= =v", "k").as_deref(), Some("=v"));
        assert_eq!(value_of("k", "k").as_deref(), Some(""));
        assert_eq!(value_of("=v", "").as_deref(), Some("v"));
        assert_eq!(value_of(r"a\=b\:c\ d=v", "a=b:c d").as_deref(), Some("v"));
        assert_eq!(value_of("k=v  ", "k").as_deref(), Some("v  "));
    }

    #[test]
    fn comments_and_blank_lines_carry_no_key() {
        let file = "# a=1\n  ! b=2\n\n \t\nc=3\r\nd=4\re=5";
        let properties = Properties::parse(file.as_bytes()).unwrap();
        let keys: Vec<_> = properties.iter().map(|(key, entry)| (key, entry.line)).collect();
        assert_eq!(keys, [("c", Some(5)), ("d", Some(6)), ("e", Some(7))]);
    }

    #[test]
    fn a_backslash_continues_a_line_and_two_do_not() {
        assert_eq!(value_of("k=a,\\\n   b,\\\n#c", "k").as_deref(), Some("a,b,#c"));
        assert_eq!(value_of("k=a\\\\\nb=c", "k").as_deref(), Some("a\\"));
        assert_eq!(value_of("k=a\\", "k").as_deref(), Some("a"));
        assert_eq!(value_of("k\\\n=v", "k").as_deref(), Some("v"));
        let twice = Properties::parse(b"a=1,\\\n2\nb=3").unwrap();
        assert_eq!(twice.get("b").unwrap().line, Some(3));
    }

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(value_of(r"k=a\tb\nc\u00e9\\d\q", "k").as_deref(), Some("a\tb\nc\u{e9}\\dq"));
        assert_eq!(value_of(r"k=\ud83d\ude00", "k").as_deref(), Some("\u{1f600}"));
        assert_eq!(Properties::parse(b"a=1\nk=\\u12").unwrap_err(), PropertiesError { line: 2 });
        assert_eq!(Properties::parse(b"k=\\u+123").unwrap_err(), PropertiesError { line: 1 });
    }

    #[test]
    fn bytes_are_utf8_or_else_latin1() {
        assert_eq!(value_of("k=\u{e9}", "k").as_deref(), Some("\u{e9}"));
        let latin = Properties::parse(b"k=caf\xe9").unwrap();
        assert_eq!(latin.get("k").unwrap().value, "caf\u{e9}");
    }

    #[test]
    fn the_last_of_several_lines_wins_and_the_others_are_told() {
        let properties = Properties::parse(b"k=1\nx=0\nk=2\n").unwrap();
        assert_eq!(properties.get("k"), Some(&Entry { value: "2".into(), line: Some(3) }));
        assert_eq!(properties.duplicates(), [Duplicate { key: "k".into(), ignored: 1, wins: 3 }]);
    }

    #[test]
    fn an_override_has_no_line_and_is_no_duplicate() {
        let mut properties = Properties::parse(b"k=1").unwrap();
        properties.set("k", "2");
        assert_eq!(properties.get("k"), Some(&Entry { value: "2".into(), line: None }));
        assert_eq!(properties.duplicates(), []);
    }
}
