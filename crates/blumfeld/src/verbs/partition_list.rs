//! JSON files that name partitions, as Kafka's tools read them: `{"partitions":[{"topic":"t","partition":0}]}`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use wire::types::TopicPartition;

use crate::error::VerbError;

/// Reads a file of partitions; `field`, if there is one, is a number that each of them must have.
///
/// # Errors
/// If the file cannot be read, is something else, or names a partition twice.
pub(crate) fn read(path: &Path, field: Option<&str>) -> Result<BTreeMap<TopicPartition, i64>, VerbError> {
    let bytes = std::fs::read(path).map_err(|error| VerbError::file(path, error))?;
    parse(&bytes, field).map_err(|text| VerbError::Usage(format!("{}: {text}", path.display())))
}

fn parse(bytes: &[u8], field: Option<&str>) -> Result<BTreeMap<TopicPartition, i64>, String> {
    let json: Value = serde_json::from_slice(bytes).map_err(|error| format!("this is no JSON: {error}"))?;
    match json.get("version").map(Value::as_i64) {
        None | Some(Some(1)) => {}
        Some(_) => return Err("only version 1 of the file is known".to_owned()),
    }
    let shape = match field {
        None => r#"{"topic": "t", "partition": 0}"#.to_owned(),
        Some(field) => format!(r#"{{"topic": "t", "partition": 0, "{field}": 1}}"#),
    };
    let wrong = || format!(r#"{{"partitions": [{shape}, ...]}} is expected"#);
    let mut partitions = BTreeMap::new();
    for entry in json.get("partitions").and_then(Value::as_array).ok_or_else(wrong)? {
        let number = |name: &str| entry.get(name).and_then(Value::as_i64).ok_or_else(wrong);
        let topic = entry.get("topic").and_then(Value::as_str).ok_or_else(wrong)?;
        let index = i32::try_from(number("partition")?).map_err(|_| wrong())?;
        let partition = TopicPartition::new(topic, index);
        let value = field.map_or(Ok(0), number)?;
        if partitions.contains_key(&partition) {
            return Err(format!("{partition} is named twice"));
        }
        partitions.insert(partition, value);
    }
    Ok(partitions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_read_with_the_number_that_is_asked_for() {
        let text = br#"{"partitions":[{"topic":"t","partition":1,"offset":-1}],"version":1}"#;
        let read = parse(text, Some("offset")).unwrap();
        assert_eq!(read.into_iter().collect::<Vec<_>>(), [(TopicPartition::new("t", 1), -1)]);
        let text = br#"{"partitions":[{"topic":"t","partition":1}]}"#;
        assert_eq!(parse(text, None).unwrap().len(), 1);
    }

    #[test]
    fn a_file_of_something_else_is_refused_with_what_is_expected() {
        for (text, expected) in [
            ("x", "no JSON"),
            ("{}", r#"{"partitions": [{"topic": "t", "partition": 0, "offset": 1}, ...]}"#),
            (r#"{"partitions":[{"topic":"t","partition":1}]}"#, "is expected"),
            (r#"{"partitions":[],"version":2}"#, "version 1"),
            (
                r#"{"partitions":[{"topic":"t","partition":1,"offset":1},{"topic":"t","partition":1,"offset":2}]}"#,
                "t-1 is named twice",
            ),
            (r#"{"partitions":[{"topic":"t","partition":4294967296,"offset":1}]}"#, "is expected"),
        ] {
            let error = parse(text.as_bytes(), Some("offset")).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
