//! The value of `--topic`: a regular expression that must match the whole name, or several separated by
//! commas, as in Kafka's tools. Dots of a plain name match any character there; here a name that exists as
//! written is meant as written.

use regex_lite::Regex;

use crate::failure::Failure;

/// Names of topics.
#[derive(Debug)]
pub(crate) struct TopicPattern {
    plain: Option<String>,
    regex: Regex,
}

impl TopicPattern {
    /// Reads the value of the option.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let text = text.trim().trim_matches(['"', '\'']).replace(' ', "");
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        let regex = Regex::new(&format!("^(?:{})$", text.replace(',', "|")));
        let regex =
            regex.map_err(|error| Failure::new(format!("'{text}' is no regular expression: {error}")))?;
        Ok(Self { plain: is_plain.then_some(text), regex })
    }

    /// Whether the name is meant.
    pub(crate) fn matches(&self, name: &str) -> bool {
        match &self.plain {
            Some(plain) => plain == name,
            None => self.regex.is_match(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_whole_names() {
        let matching = |pattern: &str| {
            let pattern = TopicPattern::parse(pattern).unwrap();
            ["a", "ab", "a.b", "axb", "c"]
                .into_iter()
                .filter(|name| pattern.matches(name))
                .collect::<Vec<_>>()
        };
        assert_eq!(matching("a"), ["a"]);
        assert_eq!(matching("a.*"), ["a", "ab", "a.b", "axb"]);
        assert_eq!(matching("a, c"), ["a", "c"]);
        assert_eq!(matching("\"ab|c\""), ["ab", "c"]);
        assert_eq!(matching("a.b"), ["a.b"]);
        assert_eq!(matching("a[.]b"), ["a.b"]);
        assert!(TopicPattern::parse("a(").unwrap_err().to_string().contains("no regular expression"));
    }
}
