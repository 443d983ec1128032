//! The names of partition directories: `<topic>-<partition>`, and `<topic>-<partition>.<32 hex>-<kind>` for
//! replicas that are moved, deleted or set aside.

use wire::types::TopicPartition;

/// The longest name of a directory.
const MAX_NAME_LEN: usize = 255;

/// What a partition directory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DirKind {
    /// The replica itself.
    Current,
    /// A replica that is being moved here from another log directory.
    Future,
    /// A replica that waits for its removal.
    Delete,
    /// A replica that was set aside.
    Stray,
}

impl DirKind {
    fn suffix(self) -> &'static str {
        match self {
            Self::Current => "",
            Self::Future => "-future",
            Self::Delete => "-delete",
            Self::Stray => "-stray",
        }
    }
}

/// The name of the directory of a replica.
pub fn current_name(partition: &TopicPartition) -> String {
    partition.to_string()
}

/// A new name for a replica that is to be removed. The topic is shortened so that the name stays legal.
pub fn delete_name(partition: &TopicPartition) -> String {
    let suffix = format!("-{}.{:032x}{}", partition.partition, fastrand::u128(..), DirKind::Delete.suffix());
    let room = MAX_NAME_LEN.saturating_sub(suffix.len());
    let topic: String = partition.topic.as_str().chars().take(room).collect();
    format!("{topic}{suffix}")
}

/// Reads the name of a partition directory; `None` if it is not one. A shortened topic of a `-delete` name is
/// given as it stands.
pub fn parse(name: &str) -> Option<(TopicPartition, DirKind)> {
    let kinds = [DirKind::Future, DirKind::Delete, DirKind::Stray];
    let kind = kinds.into_iter().find(|kind| name.ends_with(kind.suffix())).unwrap_or(DirKind::Current);
    let base = match kind {
        DirKind::Current => name,
        _ => {
            let (base, id) = name.strip_suffix(kind.suffix())?.rsplit_once('.')?;
            if id.is_empty() || name.contains(char::is_whitespace) {
                return None;
            }
            base
        }
    };
    let (topic, digits) = base.rsplit_once('-')?;
    let partition: i32 = digits.parse().ok()?;
    // Only the one spelling that is ever written: no sign, no leading zeros.
    (!topic.is_empty() && partition >= 0 && partition.to_string() == digits)
        .then(|| (TopicPartition::new(topic, partition), kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_replica_is_named_by_topic_and_partition() {
        assert_eq!(parse("with.config-12"), Some((TopicPartition::new("with.config", 12), DirKind::Current)));
        assert_eq!(parse("a-b-3"), Some((TopicPartition::new("a-b", 3), DirKind::Current)));
        assert_eq!(current_name(&TopicPartition::new("a-b", 3)), "a-b-3");
    }

    #[test]
    fn moved_deleted_and_stray_replicas_are_known_by_their_suffix() {
        for kind in [DirKind::Future, DirKind::Delete, DirKind::Stray] {
            let name = format!("a.b-3.{ID}{}", kind.suffix());
            assert_eq!(parse(&name), Some((TopicPartition::new("a.b", 3), kind)));
        }
    }

    #[test]
    fn other_names_are_refused() {
        let names = ["foo", "topic-", "-0", "t-x", "t-+1", "t-01", "t--", "lost+found", "t-0.-delete", "t-delete"];
        for name in names {
            assert_eq!(parse(name), None, "{name}");
        }
        assert_eq!(parse(&format!("t x-0.{ID}-delete")), None);
    }

    #[test]
    fn the_name_for_a_deletion_is_unique_and_cut_to_255_characters() {
        let partition = TopicPartition::new("t", 0);
        assert_ne!(delete_name(&partition), delete_name(&partition));
        assert_eq!(parse(&delete_name(&partition)), Some((partition, DirKind::Delete)));
        let long = TopicPartition::new("x".repeat(249).as_str(), 1234);
        let name = delete_name(&long);
        assert_eq!(name.len(), 255);
        let (parsed, _) = parse(&name).expect("legal");
        assert!(parsed.partition == 1234 && long.topic.as_str().starts_with(parsed.topic.as_str()));
    }
}
