//! Which topics an action is about: a regular expression over whole names, or an id.
//!
//! As Kafka reads it: blanks and quotes around the expression fall away, and a comma means "or".

use regex_lite::Regex;
use wire::messages::metadata_response::MetadataResponseTopic;
use wire::types::TopicId;

use crate::error::VerbError;

/// A choice of topics.
#[derive(Debug)]
pub(crate) enum Selection {
    /// All.
    All,
    /// Those whose whole name fits.
    Named(Regex),
    /// The one with this id.
    Id(TopicId),
}

impl Selection {
    /// Reads `--topic` and `--topic-id`; the id wins.
    ///
    /// # Errors
    /// If either cannot be read.
    pub(crate) fn parse(topic: Option<&str>, id: Option<&str>) -> Result<Self, VerbError> {
        if let Some(id) = id {
            let parsed = TopicId::parse(id).map(Self::Id);
            return parsed.ok_or_else(|| VerbError::Usage(format!("--topic-id {id} is no topic id")));
        }
        let Some(topic) = topic else { return Ok(Self::All) };
        let pattern = topic.trim().replace(',', "|").replace(' ', "");
        let pattern = pattern.trim_matches(|c| c == '"' || c == '\'');
        let regex = Regex::new(&format!("^(?:{pattern})$"));
        let wrong = |error| VerbError::Usage(format!("--topic {topic} is no regular expression: {error}"));
        Ok(Self::Named(regex.map_err(wrong)?))
    }

    /// Whether the topic is chosen.
    pub(crate) fn holds(&self, topic: &MetadataResponseTopic) -> bool {
        match self {
            Self::All => true,
            Self::Named(regex) => topic.name.as_deref().is_some_and(|name| regex.is_match(name)),
            Self::Id(id) => topic.topic_id == *id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(pattern: &str, name: &str) -> bool {
        let topic = MetadataResponseTopic { name: Some(name.into()), ..Default::default() };
        Selection::parse(Some(pattern), None).unwrap().holds(&topic)
    }

    #[test]
    fn an_expression_fits_whole_names() {
        assert!(chosen("a.*", "abc") && chosen("a,b", "b") && chosen(" \"a|b\" ", "a"));
        assert!(!chosen("a", "ab") && !chosen("a,b", "ab") && !chosen("b", "ab"));
        assert!(Selection::parse(Some("("), None).is_err());
    }

    #[test]
    fn an_id_chooses_one_topic() {
        let id = TopicId([7; 16]);
        let selection = Selection::parse(Some("x"), Some(&id.to_string())).unwrap();
        let topic = |topic_id| MetadataResponseTopic { topic_id, ..Default::default() };
        assert!(selection.holds(&topic(id)) && !selection.holds(&topic(TopicId::ZERO)));
        assert!(Selection::parse(None, Some("short")).is_err());
    }
}
