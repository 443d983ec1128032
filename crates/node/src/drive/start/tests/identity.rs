use super::super::identity::{find_broker_id, find_cluster_id};
use super::*;
use metadata::znode::cluster_id;

#[test]
fn the_first_broker_founds_the_cluster_and_all_others_join_it() {
    let store = cluster();
    let founded = find_cluster_id(&session(&store), &MEMBER, None, 1).unwrap();
    assert_eq!(founded.len(), 22);
    assert_eq!(find_cluster_id(&session(&store), &MEMBER, None, 2).unwrap(), founded);
    assert_eq!(find_cluster_id(&session(&store), &MEMBER, Some("another"), 2).unwrap(), founded);
}

/// A wrong `zookeeper.connect` must not make a second cluster of the same data.
#[test]
fn directories_of_a_cluster_found_no_second_one_in_an_empty_zookeeper() {
    let store = cluster();
    let error = find_cluster_id(&session(&store), &MEMBER, Some("old"), 1).unwrap_err();
    assert!(matches!(&error, StartError::NoSuchCluster(id) if id == "old"));
    assert!(error.to_string().contains("zookeeper.connect"));
    assert_eq!(Blocking::new(&session(&store)).exists(cluster_id::PATH).unwrap(), None);
    assert_eq!(find_cluster_id(&session(&store), &Membership::Alone, Some("old"), 1).unwrap(), "old");
}

#[test]
fn an_id_is_configured_or_kept_or_drawn_anew() {
    let store = cluster();
    let session = session(&store);
    let find =
        |settings: &[(&str, &str)], of_dirs| find_broker_id(&session, &config(settings), of_dirs).unwrap().0;
    assert_eq!(find(&[("broker.id", "7")], Some(BrokerId(9))), 7);
    assert_eq!(find(&[("broker.id", "-1")], Some(BrokerId(9))), 9);
    assert_eq!(find(&[("broker.id", "-1")], None), 1001);
    assert_eq!(find(&[("broker.id", "-1"), ("reserved.broker.max.id", "5")], None), 7);
}
