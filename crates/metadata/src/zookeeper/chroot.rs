//! The znode below which the cluster lives: paths get longer on the way out and shorter on the way back.

use crate::path;
use std::borrow::Cow;

/// A chroot; the root by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chroot(Option<String>);

impl Chroot {
    pub(super) fn new(path: Option<&str>) -> Self {
        Self(path.map(str::to_owned))
    }

    /// The path that the server knows.
    pub(super) fn outward<'a>(&self, inner: &'a str) -> Cow<'a, str> {
        match &self.0 {
            None => Cow::Borrowed(inner),
            Some(chroot) if inner == path::ROOT => Cow::Owned(chroot.clone()),
            Some(chroot) => Cow::Owned(format!("{chroot}{inner}")),
        }
    }

    /// The path that the session knows; `None` if it lies outside.
    pub(super) fn inward<'a>(&self, outer: &'a str) -> Option<&'a str> {
        match &self.0 {
            None => Some(outer),
            Some(chroot) => match outer.strip_prefix(chroot.as_str())? {
                "" => Some(path::ROOT),
                rest => rest.starts_with('/').then_some(rest),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_out_and_come_back() {
        let chroot = Chroot::new(Some("/kafka"));
        for (inner, outer) in [("/", "/kafka"), ("/brokers/ids", "/kafka/brokers/ids"), ("/a/", "/kafka/a/")]
        {
            assert_eq!(chroot.outward(inner), outer);
            assert_eq!(chroot.inward(outer), Some(inner));
        }
        assert_eq!(chroot.inward("/kafka2/brokers"), None);
        assert_eq!(chroot.inward("/other"), None);
        assert_eq!(Chroot::default().outward("/a"), "/a");
        assert_eq!(Chroot::default().inward("/"), Some("/"));
    }
}
