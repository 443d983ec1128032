//! `/consumers/<group>/offsets/<topic>/<partition>`: what a consumer of the first protocol versions has committed, as
//! decimal text. Groups of later versions keep theirs in `__consumer_offsets`.

use super::DecodeError;
use crate::path::is_valid;
use wire::types::{Offset, TopicPartition};

const KIND: &str = "consumer offset";

/// Names that a group's id may have between slashes: each is a znode that has to be made for each offset.
pub const MAX_NAMES_OF_GROUP: usize = 16;

/// The path; `None` if the group's id can be no part of one, or has more than [`MAX_NAMES_OF_GROUP`] names. A slash in
/// the id leads a level further down.
pub fn path(group_id: &str, partition: &TopicPartition) -> Option<String> {
    let path = format!("/consumers/{group_id}/offsets/{}/{}", partition.topic, partition.partition);
    (is_valid(&path) && group_id.split('/').count() <= MAX_NAMES_OF_GROUP).then_some(path)
}

/// The paths of what lies between `/consumers` and the znode at `path`, from the top, and `path` at the end.
pub fn with_parents(path: &str) -> impl Iterator<Item = &str> {
    // The first slash is the root's, the second one ends `/consumers`.
    let parents = path.match_indices('/').skip(2).filter_map(|(end, _)| path.get(..end));
    parents.chain([path])
}

/// The value of the znode.
pub fn encode(offset: Offset) -> Vec<u8> {
    offset.0.to_string().into_bytes()
}

/// The offset in the value of the znode; none if it has no value.
///
/// # Errors
/// Text that is no number.
pub fn decode(data: Option<&[u8]>) -> Result<Option<Offset>, DecodeError> {
    let Some(data) = data else { return Ok(None) };
    let text = str::from_utf8(data).map_err(|error| DecodeError::new(KIND, error))?;
    text.parse().map(|offset| Some(Offset(offset))).map_err(|error| DecodeError::new(KIND, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_decimal_text_below_its_group_and_topic() {
        let path = path("g", &TopicPartition::new("t", 3)).unwrap();
        assert_eq!(path, "/consumers/g/offsets/t/3");
        assert!(with_parents(&path).eq([
            "/consumers/g",
            "/consumers/g/offsets",
            "/consumers/g/offsets/t",
            "/consumers/g/offsets/t/3"
        ]));
        assert_eq!(encode(Offset(42)), b"42");
        assert_eq!(decode(Some(b"42")), Ok(Some(Offset(42))));
        assert_eq!(decode(None), Ok(None));
        assert!(decode(Some(b"4x")).is_err() && decode(Some(b"\xff")).is_err());
    }

    #[test]
    fn a_slash_in_the_id_of_a_group_leads_a_level_down() {
        let path = path("a/b", &TopicPartition::new("t", 0)).unwrap();
        assert_eq!(path, "/consumers/a/b/offsets/t/0");
        assert!(with_parents(&path).take(2).eq(["/consumers/a", "/consumers/a/b"]));
    }

    #[test]
    fn an_id_that_can_be_no_part_of_a_path_has_none() {
        for id in ["", ".", "..", "a/..", "a//b", "/a", "a/", "a\0"] {
            assert_eq!(path(id, &TopicPartition::new("t", 0)), None, "{id:?}");
        }
    }

    #[test]
    fn an_id_of_very_many_names_has_no_path() {
        let of = |count: usize| path(&vec!["a"; count].join("/"), &TopicPartition::new("t", 0));
        assert!(of(MAX_NAMES_OF_GROUP).is_some());
        assert_eq!(of(MAX_NAMES_OF_GROUP + 1), None);
    }
}
