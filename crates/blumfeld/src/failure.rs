//! Why a verb fails: one line that says what went wrong, and, where there is something to do, one that says
//! what. A reader of our output that goes away is no failure.

use std::fmt;
use std::io;

use wire::Str;
use wire::error_code::ErrorCode;

/// A failure of a verb.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    hint: Option<String>,
    is_quiet: bool,
}

impl Failure {
    /// A failure that says what went wrong.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), hint: None, is_quiet: false }
    }

    /// The same with what can be done about it.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The broker's refusal: its words, or those of the code.
    pub(crate) fn refused(what: &str, code: i16, message: Option<&Str>) -> Self {
        let known = ErrorCode::from_code(code);
        let name = known.map_or_else(|| format!("error code {code}"), |known| known.name().to_owned());
        let told = message.filter(|message| !message.is_empty()).map(ToString::to_string);
        let told = told.or_else(|| known.map(|known| known.message().to_owned())).unwrap_or_default();
        Self::new(format!("{what}: {told} ({name})"))
    }

    /// Whether nobody is left who would read about it.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_quiet
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n  {hint}"))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let is_quiet = error.kind() == io::ErrorKind::BrokenPipe;
        Self { is_quiet, ..Self::new(error.to_string()) }
    }
}

impl From<net::client::ClientError> for Failure {
    fn from(error: net::client::ClientError) -> Self {
        Self::new(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_brokers_words_or_those_of_the_code() {
        let told = Failure::refused("Topic t", 40, Some(&Str::from("no such key")));
        assert_eq!(told.to_string(), "Topic t: no such key (INVALID_CONFIG)");
        let untold = Failure::refused("Topic t", 3, Some(&Str::from(""))).to_string();
        assert!(untold.contains(ErrorCode::UnknownTopicOrPartition.message()), "{untold}");
        assert!(Failure::refused("x", 999, None).to_string().contains("error code 999"));
    }

    #[test]
    fn a_reader_that_goes_away_is_quiet() {
        assert!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).is_quiet());
        assert!(!Failure::from(io::Error::from(io::ErrorKind::NotFound)).is_quiet());
    }
}
