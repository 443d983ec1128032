//! The names of topics that are in creation here, so that of two names that collide (`a.b` and `a_b`) only one is made,
//! though neither shows in the picture of the cluster yet. Only names that can collide are kept.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kernel::metadata_image::MetadataImage;
use kernel::topic_name;
use wire::types::TopicName;

use super::collides;
use crate::refusal::Refusal;

/// How long a name is kept that does not come to show in the picture, in milliseconds.
const KEPT_MS: i64 = 60_000;
/// How many names are kept; one more is not, and then only the picture speaks.
const MAX_NAMES: usize = 10_000;

/// The names in creation, each with the time of its begin on the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct NewNames(Mutex<BTreeMap<TopicName, i64>>);

impl NewNames {
    /// The creation of `name` begins, unless a name in creation collides with it. The same name is no collision: the
    /// store tells who was first.
    pub(super) fn enter(&self, image: &MetadataImage, name: &TopicName, now_ms: i64) -> Result<(), Refusal> {
        if !name.as_str().contains(['.', '_']) {
            return Ok(());
        }
        let mut names = self.lock();
        names.retain(|name, since_ms| {
            image.topic(name.as_str()).is_none() && now_ms.saturating_sub(*since_ms) < KEPT_MS
        });
        let other = names.keys().find(|it| *it != name && topic_name::collide(it.as_str(), name.as_str()));
        if let Some(other) = other {
            return Err(collides(name.as_str(), other));
        }
        if names.len() < MAX_NAMES {
            names.insert(name.clone(), now_ms);
        }
        Ok(())
    }

    /// The topic shows in the picture, was not made, or is deleted.
    pub(super) fn leave(&self, name: &TopicName) {
        self.lock().remove(name);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TopicName, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(names: &NewNames, name: &str, now_ms: i64) -> bool {
        names.enter(&MetadataImage::default(), &TopicName::from(name), now_ms).is_ok()
    }

    #[test]
    fn of_names_that_collide_the_first_is_made_until_it_is_given_up() {
        let names = NewNames::default();
        assert!(enter(&names, "a.b", 0) && enter(&names, "a.b", 0) && enter(&names, "a.c", 0));
        assert!(!enter(&names, "a_b", 1));
        names.leave(&TopicName::from("a.b"));
        assert!(enter(&names, "a_b", 2));
        assert!(!enter(&names, "a.b", 3));
    }

    #[test]
    fn a_name_that_never_shows_is_forgotten() {
        let names = NewNames::default();
        assert!(enter(&names, "a.b", 0));
        assert!(!enter(&names, "a_b", KEPT_MS - 1));
        assert!(enter(&names, "a_b", KEPT_MS));
    }

    #[test]
    fn names_that_cannot_collide_are_not_kept_and_no_more_than_the_limit_are() {
        let names = NewNames::default();
        assert!(enter(&names, "plain", 0));
        assert!(names.lock().is_empty());
        let mut held = names.lock();
        held.extend((0..MAX_NAMES).map(|number| (TopicName::from(format!("x.{number}").as_str()), 0)));
        drop(held);
        assert!(enter(&names, "a.b", 0));
        assert_eq!(names.lock().len(), MAX_NAMES);
    }
}
