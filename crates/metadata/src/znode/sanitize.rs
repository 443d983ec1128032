//! How names of users, clients and IPs become names of znodes: URL encoding, with `%20` for a blank and `%2A` for `*`.

use std::fmt::Write;

/// The name of the znode for `name`. Letters, digits and `.`, `-`, `_` stay; all other bytes of its UTF-8 become `%XX`.
pub fn sanitize(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The name behind that of a znode; `+` is a blank too. `None` if an escape is broken or the bytes are no UTF-8.
pub fn desanitize(name: &str) -> Option<String> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'%' => {
                let (digits, tail) = tail.split_at_checked(2)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                out.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                rest = tail;
            }
            b'+' => out.push(b' '),
            byte => out.push(*byte),
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_escaped_as_kafka_does() {
        for (name, znode) in [
            ("al ice", "al%20ice"),
            ("a@b=c,d%20", "a%40b%3Dc%2Cd%2520"),
            ("a*b+c", "a%2Ab%2Bc"),
            ("CN=x,OU=é", "CN%3Dx%2COU%3D%C3%A9"),
            ("a.b-c_d", "a.b-c_d"),
        ] {
            assert_eq!(sanitize(name), znode);
            assert_eq!(desanitize(znode).as_deref(), Some(name));
        }
        assert_eq!(desanitize("a+b").as_deref(), Some("a b"));
        for broken in ["%", "%2", "%+1", "%zz", "%FF"] {
            assert_eq!(desanitize(broken), None, "{broken}");
        }
    }

    proptest! {
        #[test]
        fn any_name_comes_back_and_is_one_name_of_a_path(name in any::<String>()) {
            let znode = sanitize(&name);
            prop_assert!(!znode.contains('/'));
            prop_assert_eq!(desanitize(&znode), Some(name));
        }
    }
}
