//! `/consumers/<group>/offsets/<topic>/<partition>`: what a consumer of the first protocol versions has committed, as
//! decimal text. Groups of later versions keep theirs in `__consumer_offsets`.

use super::DecodeError;
use wire::types::{Offset, TopicPartition};

const KIND: &str = "consumer offset";

/// The path, and before it those of its parents, which may have to be made; `None` if the group's name can be no part of
/// a path.
pub fn paths(group_id: &str, partition: &TopicPartition) -> Option<[String; 4]> {
    if group_id.is_empty() || group_id == "." || group_id == ".." || group_id.contains(['/', '\0']) {
        return None;
    }
    let group = format!("/consumers/{group_id}");
    let offsets = format!("{group}/offsets");
    let topic = format!("{offsets}/{}", partition.topic);
    let path = format!("{topic}/{}", partition.partition);
    Some([group, offsets, topic, path])
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
        let [group, offsets, topic, path] = paths("g", &TopicPartition::new("t", 3)).unwrap();
        assert_eq!(
            [&*group, &*offsets, &*topic],
            ["/consumers/g", "/consumers/g/offsets", "/consumers/g/offsets/t"]
        );
        assert_eq!(path, "/consumers/g/offsets/t/3");
        assert_eq!(encode(Offset(42)), b"42");
        assert_eq!(decode(Some(b"42")), Ok(Some(Offset(42))));
        assert_eq!(decode(None), Ok(None));
        assert!(decode(Some(b"4x")).is_err() && decode(Some(b"\xff")).is_err());
    }

    #[test]
    fn a_name_that_can_be_no_part_of_a_path_has_none() {
        for name in ["", ".", "..", "a/b", "a\0"] {
            assert_eq!(paths(name, &TopicPartition::new("t", 0)), None, "{name:?}");
        }
    }
}
