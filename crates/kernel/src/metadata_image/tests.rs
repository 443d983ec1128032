use super::*;

fn topic(name: &str, id: u8) -> TopicImage {
    TopicImage { name: name.into(), id: TopicId([id; 16]), partitions: BTreeMap::new() }
}

#[test]
fn a_topic_is_found_by_name_and_by_id_until_it_is_removed() {
    let image = MetadataImage::default().with_topics([topic("a", 1), topic("b", 2)]);
    assert_eq!(image.topic_by_id(TopicId([2; 16])).unwrap().name.as_str(), "b");
    let without = image.clone().without_topic("b");
    assert!(without.topic("b").is_none() && without.topic_by_id(TopicId([2; 16])).is_none());
    assert!(image.topic("b").is_some(), "an image that is held does not change");
}

#[test]
fn a_topic_made_anew_is_not_found_by_its_old_id() {
    let image = MetadataImage::default().with_topics([topic("a", 1)]).with_topics([topic("a", 3)]);
    assert!(image.topic_by_id(TopicId([1; 16])).is_none());
    assert_eq!(image.topic_by_id(TopicId([3; 16])).unwrap().name.as_str(), "a");
}

#[test]
fn the_zero_id_names_no_topic() {
    let image = MetadataImage::default().with_topics([topic("a", 0)]);
    assert!(image.topic("a").is_some() && image.topic_by_id(TopicId::ZERO).is_none());
}
