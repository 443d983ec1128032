//! Records of `__consumer_offsets` as JSON, in the form of Kafka's OffsetsMessageFormatter and
//! GroupMetadataMessageFormatter: the version of key and value, and their members. Records of the other kind are passed
//! over, and what was written by a newer release is shown by its version only.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use wire::{DecodeError, Decoder, Str};

/// Which records are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Committed offsets.
    Offsets,
    /// Groups.
    Groups,
}

impl Kind {
    /// The kind that a formatter's class shows.
    pub(super) fn of_class(name: &str) -> Option<Self> {
        match name {
            "OffsetsMessageFormatter" => Some(Self::Offsets),
            "GroupMetadataMessageFormatter" => Some(Self::Groups),
            _ => None,
        }
    }

    /// The record, if it is of this kind.
    ///
    /// # Errors
    /// If its bytes are cut short.
    pub(super) fn read(
        self,
        key: Option<&Bytes>,
        value: Option<&Bytes>,
    ) -> Result<Option<Value>, DecodeError> {
        let Some(key) = key else { return Ok(None) };
        let mut input = Decoder::new(key.clone());
        let version = input.i16()?;
        let data = match (self, version) {
            (Self::Offsets, 0 | 1) => json!({
                "group": string(&mut input)?,
                "topic": string(&mut input)?,
                "partition": input.i32()?,
            }),
            (Self::Groups, 2) => json!({ "group": string(&mut input)? }),
            _ => return Ok(None),
        };
        let value = match value {
            None => Value::Null,
            Some(value) => self.value(value)?,
        };
        Ok(Some(json!({ "key": { "version": version, "data": data }, "value": value })))
    }

    fn value(self, bytes: &Bytes) -> Result<Value, DecodeError> {
        let mut input = Decoder::new(bytes.clone());
        let version = input.i16()?;
        let data = match (self, version) {
            (Self::Offsets, 0..=3) => offset(&mut input, version)?,
            (Self::Groups, 0..=3) => group(&mut input, version)?,
            _ => Value::from("unknown"),
        };
        Ok(json!({ "version": version, "data": data }))
    }
}

fn string(input: &mut Decoder) -> Result<String, DecodeError> {
    Ok(input.string(false)?.as_str().to_owned())
}

fn nullable(input: &mut Decoder) -> Result<Option<String>, DecodeError> {
    Ok(input.nullable_string(false)?.as_ref().map(Str::as_str).map(str::to_owned))
}

fn offset(input: &mut Decoder, version: i16) -> Result<Value, DecodeError> {
    let mut data = Map::new();
    data.insert("offset".to_owned(), input.i64()?.into());
    if version >= 3 {
        data.insert("leaderEpoch".to_owned(), input.i32()?.into());
    }
    data.insert("metadata".to_owned(), string(input)?.into());
    data.insert("commitTimestamp".to_owned(), input.i64()?.into());
    if version == 1 {
        data.insert("expireTimestamp".to_owned(), input.i64()?.into());
    }
    Ok(Value::Object(data))
}

fn group(input: &mut Decoder, version: i16) -> Result<Value, DecodeError> {
    let mut data = Map::new();
    data.insert("protocolType".to_owned(), string(input)?.into());
    data.insert("generation".to_owned(), input.i32()?.into());
    data.insert("protocol".to_owned(), nullable(input)?.into());
    data.insert("leader".to_owned(), nullable(input)?.into());
    if version >= 2 {
        data.insert("currentStateTimestamp".to_owned(), input.i64()?.into());
    }
    let members = input.array(false, 16, |input| member(input, version))?;
    data.insert("members".to_owned(), members.into());
    Ok(Value::Object(data))
}

fn member(input: &mut Decoder, version: i16) -> Result<Value, DecodeError> {
    let mut data = Map::new();
    data.insert("memberId".to_owned(), string(input)?.into());
    if version >= 3 {
        data.insert("groupInstanceId".to_owned(), nullable(input)?.into());
    }
    data.insert("clientId".to_owned(), string(input)?.into());
    data.insert("clientHost".to_owned(), string(input)?.into());
    if version >= 1 {
        data.insert("rebalanceTimeout".to_owned(), input.i32()?.into());
    }
    data.insert("sessionTimeout".to_owned(), input.i32()?.into());
    data.insert("subscription".to_owned(), STANDARD.encode(input.bytes(false)?).into());
    data.insert("assignment".to_owned(), STANDARD.encode(input.bytes(false)?).into());
    Ok(Value::Object(data))
}

#[cfg(test)]
mod tests {
    use wire::Encoder;

    use super::*;

    fn bytes(write: impl FnOnce(&mut Encoder)) -> Bytes {
        let mut out = Encoder::new();
        write(&mut out);
        out.into_bytes()
    }

    fn put(out: &mut Encoder, text: &str) {
        out.put_string(&Str::from(text), false).unwrap();
    }

    fn offset_key() -> Bytes {
        bytes(|out| {
            out.put_i16(1);
            put(out, "g");
            put(out, "t");
            out.put_i32(2);
        })
    }

    #[test]
    fn a_committed_offset_is_shown_with_its_members_and_its_deletion_with_null() {
        let value = bytes(|out| {
            out.put_i16(3);
            out.put_i64(692);
            out.put_i32(0);
            put(out, "");
            out.put_i64(1_796_049_806_222);
        });
        let shown = Kind::Offsets.read(Some(&offset_key()), Some(&value)).unwrap().unwrap();
        let expected = r#"{"key":{"version":1,"data":{"group":"g","topic":"t","partition":2}},"value":{"version":3,"data":{"offset":692,"leaderEpoch":0,"metadata":"","commitTimestamp":1796049806222}}}"#;
        assert_eq!(shown.to_string(), expected);
        let deleted = Kind::Offsets.read(Some(&offset_key()), None).unwrap().unwrap();
        assert_eq!(deleted["value"], Value::Null);
    }

    #[test]
    fn a_group_is_shown_and_records_of_the_other_kind_are_not() {
        let key = bytes(|out| {
            out.put_i16(2);
            put(out, "g");
        });
        let value = bytes(|out| {
            out.put_i16(2);
            put(out, "consumer");
            out.put_i32(4);
            out.put_nullable_string(None, false).unwrap();
            out.put_nullable_string(None, false).unwrap();
            out.put_i64(5);
            out.put_count(1, false).unwrap();
            for text in ["m", "c", "/h"] {
                put(out, text);
            }
            out.put_i32(6);
            out.put_i32(7);
            out.put_bytes(&Bytes::from_static(b"s"), false).unwrap();
            out.put_bytes(&Bytes::from_static(b""), false).unwrap();
        });
        let shown = Kind::Groups.read(Some(&key), Some(&value)).unwrap().unwrap();
        let member = json!({
            "memberId": "m", "clientId": "c", "clientHost": "/h", "rebalanceTimeout": 6, "sessionTimeout": 7,
            "subscription": "cw==", "assignment": "",
        });
        assert_eq!(shown["value"]["data"]["members"], json!([member]));
        assert_eq!(Kind::Offsets.read(Some(&key), Some(&value)).unwrap(), None);
        assert_eq!(Kind::Groups.read(Some(&offset_key()), None).unwrap(), None);
        assert!(Kind::Groups.read(Some(&key), Some(&value.slice(..20))).is_err());
    }

    #[test]
    fn a_newer_value_is_told_by_its_version() {
        let value = bytes(|out| out.put_i16(9));
        let shown = Kind::Offsets.read(Some(&offset_key()), Some(&value)).unwrap().unwrap();
        assert_eq!(shown["value"], json!({ "version": 9, "data": "unknown" }));
    }
}
