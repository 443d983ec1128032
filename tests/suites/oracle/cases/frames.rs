//! Frames that are no request: unknown keys and versions, bodies cut off, counts that lie, bytes behind.

use anyhow::Result;
use bytes::Bytes;
use wire::Encoder;
use wire::api::ApiKey;
use wire::messages::{Kind, random_any};
use wire::random::Rng;

use crate::accepted::SERVED;
use crate::lab::{Lab, put_header};

pub fn run(lab: &mut Lab) -> Result<()> {
    unknown_keys(lab)?;
    unknown_versions(lab)?;
    headers(lab)?;
    for key in SERVED {
        for version in key.versions() {
            bodies(lab, key, version)?;
        }
    }
    Ok(())
}

fn header(key: i16, version: i16) -> Result<Encoder> {
    let mut dst = Encoder::new();
    put_header(&mut dst, key, version, 77)?;
    Ok(dst)
}

/// Keys that nobody serves, and those that a broker of a ZooKeeper cluster does not.
fn unknown_keys(lab: &mut Lab) -> Result<()> {
    let defined = ApiKey::ALL.iter().filter(|key| !key.is_served()).map(|key| key.code());
    for key in [-1, 88, 1_000, i16::MAX, i16::MIN].into_iter().chain(defined).chain([ApiKey::Envelope.code()])
    {
        lab.raw("a key that is not served", key, 0, |_| {
            let mut dst = Encoder::new();
            for number in [key, 0] {
                dst.put_i16(number);
            }
            dst.put_i32(77);
            dst.put_slice(&[0xff, 0xff, 0, 0, 0, 0, 0, 0]);
            Ok((dst.into_bytes(), false))
        })?;
    }
    Ok(())
}

fn unknown_versions(lab: &mut Lab) -> Result<()> {
    for key in SERVED {
        for version in [-1, key.versions().end() + 1, i16::MAX, i16::MIN] {
            lab.raw("a version that is not served", key.code(), version, |_| {
                let mut dst = Encoder::new();
                for number in [key.code(), version] {
                    dst.put_i16(number);
                }
                dst.put_i32(77);
                dst.put_slice(&[0xff, 0xff, 0, 0, 0, 0, 0, 0]);
                Ok((dst.into_bytes(), false))
            })?;
        }
    }
    Ok(())
}

fn headers(lab: &mut Lab) -> Result<()> {
    let start = [0, 3, 0, 1, 0, 0, 0, 77];
    let flexible = [0, 3, 0, 12, 0, 0, 0, 77];
    let cases: [(&str, Vec<u8>, i16); 15] = [
        ("an empty frame", Vec::new(), 1),
        ("one byte", vec![0], 1),
        ("a key only", vec![0, 3], 1),
        ("no correlation id", start[..4].to_vec(), 1),
        ("no client id", start.to_vec(), 1),
        ("a null client id", [&start[..], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff]].concat(), 1),
        ("an empty client id", [&start[..], &[0, 0, 0xff, 0xff, 0xff, 0xff]].concat(), 1),
        ("a client id of -2", [&start[..], &[0xff, 0xfe, 0, 0, 0, 0]].concat(), 1),
        ("a client id beyond the frame", [&start[..], &[0, 9, 65, 0, 0, 0, 0]].concat(), 1),
        ("a client id that is no text", [&start[..], &[0, 2, 0xc3, 0x28, 0, 0, 0, 0]].concat(), 1),
        ("a header with tags", [&flexible[..], &[0, 0, 1, 5, 2, 7, 7, 1, 0, 0, 0]].concat(), 12),
        ("a header with a tag beyond", [&flexible[..], &[0, 0, 1, 5, 0x7f, 7, 7]].concat(), 12),
        ("a header with many tags", [&flexible[..], &[0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f]].concat(), 12),
        (
            "a header with the same tag twice",
            [&flexible[..], &[0, 0, 2, 5, 0, 5, 0, 1, 0, 0, 0]].concat(),
            12,
        ),
        (
            "a count of six bytes",
            [&flexible[..], &[0, 0, 0, 0x81, 0x80, 0x80, 0x80, 0x80, 0, 0, 0, 0]].concat(),
            12,
        ),
    ];
    for (case, frame, version) in cases {
        lab.raw(case, 3, version, |_| Ok((Bytes::from(frame.clone()), false)))?;
    }
    Ok(())
}

/// A request of some kind in every version: cut off, with every length and count falsified, with bytes behind.
fn bodies(lab: &mut Lab, key: ApiKey, version: i16) -> Result<()> {
    let code = key.code();
    let mut dst = header(code, version)?;
    let head = dst.len();
    random_any(code, version, Kind::Request, &mut Rng::small(3))?.encode(&mut dst, version)?;
    let positions = dst.length_positions().to_vec();
    let bytes = dst.into_bytes();
    let body = bytes.len() - head;
    for left in [0, 1, body / 2, body.saturating_sub(1)] {
        if left < body {
            let cut = bytes.slice(..head + left);
            lab.raw(&format!("a body cut to {left} of {body}"), code, version, |_| Ok((cut.clone(), false)))?;
        }
    }
    for position in positions.iter().filter(|position| position.start >= head) {
        let claims: &[&[u8]] = match (position.flexible, position.end - position.start) {
            (true, _) => &[&[0xff, 0xff, 0xff, 0xff, 0x0f], &[0xff, 0xff, 0xff, 0xff, 0x07]],
            (false, 2) => &[&[0x7f, 0xff], &[0x80, 0]],
            (false, _) => &[&[0x7f, 0xff, 0xff, 0xff], &[0x80, 0, 0, 0]],
        };
        for claim in claims {
            let lie = Bytes::from([&bytes[..position.start], claim, &bytes[position.end..]].concat());
            let case = format!("a length that lies at {} of {body}: {claim:?}", position.start - head);
            lab.raw(&case, code, version, |_| Ok((lie.clone(), false)))?;
        }
    }
    Ok(())
}
