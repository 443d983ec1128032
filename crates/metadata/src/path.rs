//! The rules of znode paths: absolute, `/` between names, no empty name, no `.` or `..`, no control characters and
//! none of the code points that ZooKeeper refuses.

/// The path of the root.
pub const ROOT: &str = "/";

/// Whether `path` may name a znode.
pub fn is_valid(path: &str) -> bool {
    if path == ROOT {
        return true;
    }
    let Some(names) = path.strip_prefix('/') else { return false };
    let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
    let is_plain = path.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    names.as_bytes().split(|byte| *byte == b'/').all(is_name) && (is_plain || !path.chars().any(is_refused))
}

/// Whether `prefix` may be completed by the digits of a sequential znode.
pub fn is_valid_sequential_prefix(prefix: &str) -> bool {
    if prefix.ends_with('/') { is_valid(&format!("{prefix}0")) } else { is_valid(prefix) }
}

fn is_refused(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

/// The parent of `path`; `None` for the root.
pub fn parent(path: &str) -> Option<&str> {
    if path == ROOT {
        return None;
    }
    match path.rsplit_once('/')? {
        ("", _) => Some(ROOT),
        (parent, _) => Some(parent),
    }
}

/// The last name of `path`; empty for the root.
pub fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The path of the child `name` of `parent`.
pub fn child(parent: &str, name: &str) -> String {
    if parent == ROOT { format!("/{name}") } else { format!("{parent}/{name}") }
}

/// Whether `path` is `root` or lies below it.
pub fn is_within(path: &str, root: &str) -> bool {
    root == ROOT || path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The number that ends the name of a sequential znode, `None` if the name has none.
pub fn sequence_number(path: &str) -> Option<i32> {
    let at = path.len().checked_sub(10)?;
    path.get(at..)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_that_zookeeper_takes_are_valid() {
        for path in [
            "/",
            "/a",
            "/a/b",
            "/brokers/topics/a.b",
            "/config/users/al%20ice",
            "/config/brokers/<default>",
            "/.a",
        ] {
            assert!(is_valid(path), "{path}");
        }
        for path in [
            "",
            "a",
            "/a/",
            "//a",
            "/a//b",
            "/a/./b",
            "/a/..",
            "/.",
            "/a\0",
            "/a\u{1f}",
            "/a\u{85}",
            "/a\u{f000}",
            "/a\u{10000}",
        ] {
            assert!(!is_valid(path), "{path:?}");
        }
        assert!(is_valid_sequential_prefix("/a/"));
        assert!(!is_valid_sequential_prefix("/a//"));
    }

    #[test]
    fn a_path_is_taken_apart_and_put_together() {
        assert_eq!(parent("/a/b"), Some("/a"));
        assert_eq!(parent("/a"), Some("/"));
        assert_eq!(parent("/"), None);
        assert_eq!(name("/a/b"), "b");
        assert_eq!(child("/", "a"), "/a");
        assert_eq!(child("/a", "b"), "/a/b");
        assert!(is_within("/a/b", "/a") && is_within("/a", "/a") && is_within("/a", "/"));
        assert!(!is_within("/ab", "/a"));
        assert_eq!(sequence_number("/config/changes/config_change_0000000012"), Some(12));
        assert_eq!(sequence_number("/a"), None);
    }
}
