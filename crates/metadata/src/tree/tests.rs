//! The tree against a naive model: random transactions of several sessions give the same results, the same errors and
//! the same tree, and what a transaction reports as changed is enough to rebuild the tree.

use super::*;
use crate::store::{CreateMode, OpResult};
use proptest::prelude::*;

/// One znode of the model. Children are found by looking at all paths.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ModelNode {
    data: Option<Bytes>,
    czxid: i64,
    mzxid: i64,
    pzxid: i64,
    ctime_ms: i64,
    mtime_ms: i64,
    version: i32,
    children_created: i32,
    children_deleted: i32,
    owner: i64,
}

#[derive(Clone, Debug)]
struct Model {
    zxid: i64,
    nodes: BTreeMap<String, ModelNode>,
}

impl Model {
    fn new() -> Self {
        Self { zxid: 0, nodes: BTreeMap::from([("/".to_owned(), Self::node(None, 0, 0, 0))]) }
    }

    fn node(data: Option<Bytes>, zxid: i64, now: i64, owner: i64) -> ModelNode {
        ModelNode {
            data,
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime_ms: now,
            mtime_ms: now,
            version: 0,
            children_created: 0,
            children_deleted: 0,
            owner,
        }
    }

    fn parent(path: &str) -> String {
        let cut = path.rfind('/').expect("absolute");
        if cut == 0 { "/".to_owned() } else { path[..cut].to_owned() }
    }

    fn children(&self, path: &str) -> Vec<String> {
        let children = self.nodes.keys().filter(|other| *other != "/" && Self::parent(other) == path);
        children.map(|child| child[child.rfind('/').expect("absolute") + 1..].to_owned()).collect()
    }

    fn stat(&self, path: &str) -> Option<Stat> {
        let node = self.nodes.get(path)?;
        Some(Stat {
            czxid: node.czxid,
            mzxid: node.mzxid,
            pzxid: node.pzxid,
            ctime_ms: node.ctime_ms,
            mtime_ms: node.mtime_ms,
            version: node.version,
            cversion: node.children_created + node.children_deleted,
            ephemeral_owner: SessionId(node.owner),
            data_length: node.data.as_ref().map_or(0, |data| data.len() as i32),
            num_children: self.children(path).len() as i32,
        })
    }

    fn apply(&mut self, session: i64, ops: &[Op], now: i64) -> Result<Vec<OpResult>, OpFailure> {
        let mut next = self.clone();
        next.zxid += 1;
        let mut results = Vec::new();
        for (index, op) in ops.iter().enumerate() {
            results.push(next.run(session, op, now).map_err(|error| OpFailure { index, error })?);
        }
        *self = next;
        Ok(results)
    }

    fn run(&mut self, session: i64, op: &Op, now: i64) -> Result<OpResult, OpError> {
        let (zxid, path) = (self.zxid, op.path().to_owned());
        let expect = |node: Option<&ModelNode>, version: Option<i32>| match (node, version) {
            (None, _) => Err(OpError::NoNode),
            (Some(node), Some(version)) if version != node.version => Err(OpError::BadVersion),
            (Some(_), _) => Ok(()),
        };
        match op {
            Op::Create { data, mode, .. } => {
                let parent = self.nodes.get_mut(&Self::parent(&path)).ok_or(OpError::NoNode)?;
                let digits = format!("{:010}", parent.children_created);
                let path = if mode.is_sequential() { path + &digits } else { path };
                let is_ephemeral_parent = parent.owner != 0;
                if self.nodes.contains_key(&path) {
                    return Err(OpError::NodeExists);
                }
                if is_ephemeral_parent {
                    return Err(OpError::NoChildrenForEphemerals);
                }
                let parent = self.nodes.get_mut(&Self::parent(&path)).expect("it is there");
                parent.children_created += 1;
                parent.pzxid = zxid;
                let owner = if mode.is_ephemeral() { session } else { 0 };
                self.nodes.insert(path.clone(), Self::node(data.clone(), zxid, now, owner));
                Ok(OpResult::Created { stat: self.stat(&path), path })
            }
            Op::SetData { data, version, .. } => {
                expect(self.nodes.get(&path), *version)?;
                let node = self.nodes.get_mut(&path).expect("it is there");
                node.data.clone_from(data);
                node.version += 1;
                node.mzxid = zxid;
                node.mtime_ms = now;
                Ok(OpResult::Set { stat: self.stat(&path).expect("it is there") })
            }
            Op::Delete { version, .. } => {
                expect(self.nodes.get(&path), *version)?;
                if !self.children(&path).is_empty() {
                    return Err(OpError::NotEmpty);
                }
                self.delete(&path);
                Ok(OpResult::Deleted)
            }
            Op::Check { version, .. } => expect(self.nodes.get(&path), *version).map(|()| OpResult::Checked),
        }
    }

    fn delete(&mut self, path: &str) {
        self.nodes.remove(path);
        let parent = self.nodes.get_mut(&Self::parent(path)).expect("it is there");
        parent.children_deleted += 1;
        parent.pzxid = self.zxid;
    }

    fn close_session(&mut self, session: i64) -> bool {
        let owned: Vec<String> = self
            .nodes
            .iter()
            .filter(|(_, node)| node.owner == session)
            .map(|(path, _)| path.clone())
            .collect();
        if owned.is_empty() {
            return false;
        }
        self.zxid += 1;
        owned.iter().for_each(|path| self.delete(path));
        true
    }
}

#[derive(Clone, Debug)]
enum Step {
    Apply(i64, Vec<Op>),
    CloseSession(i64),
}

fn any_path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "a-b"]), 1..4)
        .prop_map(|names| format!("/{}", names.join("/")))
}

fn any_op() -> impl Strategy<Value = Op> {
    let data = prop::option::of(prop::sample::select(vec!["", "x", "longer"]))
        .prop_map(|text| text.map(|text| Bytes::from_static(text.as_bytes())));
    let version = prop::option::of(0..3i32);
    let mode = prop::sample::select(vec![
        CreateMode::Persistent,
        CreateMode::Persistent,
        CreateMode::Ephemeral,
        CreateMode::PersistentSequential,
        CreateMode::EphemeralSequential,
    ]);
    prop_oneof![
        4 => (any_path(), data.clone(), mode).prop_map(|(path, data, mode)| Op::Create { path, data, mode }),
        2 => (any_path(), data, version.clone()).prop_map(|(path, data, version)| Op::SetData { path, data, version }),
        2 => (any_path(), version.clone()).prop_map(|(path, version)| Op::Delete { path, version }),
        1 => (any_path(), version).prop_map(|(path, version)| Op::Check { path, version }),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (1..4i64, prop::collection::vec(any_op(), 1..5)).prop_map(|(session, ops)| Step::Apply(session, ops)),
        1 => (1..4i64).prop_map(Step::CloseSession),
    ]
}

/// The records of a durable store after `applied`.
fn keep(durable: &mut BTreeMap<Arc<str>, Record>, applied: &Applied) {
    for (path, record) in &applied.records {
        match record {
            Some(record) => drop(durable.insert(path.clone(), record.clone())),
            None => drop(durable.remove(path)),
        }
    }
}

proptest! {
    #[test]
    fn the_tree_does_what_the_model_does(steps in prop::collection::vec(any_step(), 1..60)) {
        let (mut tree, mut model, mut durable) = (Tree::new(), Model::new(), BTreeMap::new());
        for (now, step) in (1i64..).zip(steps) {
            match step {
                Step::Apply(session, ops) => {
                    let before = tree.clone();
                    let applied = tree.apply(SessionId(session), &ops, Millis(now));
                    if let Ok(applied) = &applied {
                        keep(&mut durable, applied);
                        prop_assert_eq!(applied.zxid, tree.zxid());
                    } else {
                        prop_assert_eq!(&tree, &before);
                    }
                    prop_assert_eq!(applied.map(|applied| applied.results), model.apply(session, &ops, now));
                }
                Step::CloseSession(session) => {
                    let applied = tree.close_session(SessionId(session), Millis(now));
                    prop_assert_eq!(applied.is_some(), model.close_session(session));
                    applied.iter().for_each(|applied| keep(&mut durable, applied));
                }
            }
            tree.check();
        }
        prop_assert_eq!(tree.zxid(), model.zxid);
        prop_assert_eq!(tree.len(), model.nodes.len());
        for (path, node) in &model.nodes {
            let stat = model.stat(path).expect("it is there");
            prop_assert_eq!(tree.get(path), Ok((node.data.clone(), stat)));
            prop_assert_eq!(tree.children(path), Ok((model.children(path), stat)));
        }
        rebuilt_tree_is_equal(tree, &durable)?;
    }
}

/// A tree that is rebuilt from what was kept equals the tree, once its ephemerals are forgotten.
fn rebuilt_tree_is_equal(mut tree: Tree, durable: &BTreeMap<Arc<str>, Record>) -> Result<(), TestCaseError> {
    let rebuilt = Tree::from_records(tree.zxid(), durable.clone()).expect("sound records");
    rebuilt.check();
    tree.nodes.retain(|_, node| node.record.owner == SessionId::NONE);
    tree.ephemerals.clear();
    let left: BTreeSet<Arc<str>> = tree.nodes.keys().cloned().collect();
    tree.nodes.values_mut().for_each(|node| node.children.retain(|child| left.contains(child)));
    prop_assert_eq!(rebuilt, tree);
    Ok(())
}

fn record(zxid: i64) -> Record {
    Record { czxid: zxid, mzxid: zxid, pzxid: zxid, ..Record::default() }
}

#[test]
fn records_that_make_no_tree_are_refused() {
    let tree = |records: &[(&str, i64)]| {
        Tree::from_records(5, records.iter().map(|(path, zxid)| (Arc::from(*path), record(*zxid))))
            .map(|tree| tree.len())
    };
    assert_eq!(tree(&[("/a", 1), ("/a/b", 2), ("/a-b", 5)]), Ok(4));
    assert_eq!(tree(&[("/a/b", 2)]), Err(TreeError::Orphan("/a".to_owned())));
    assert_eq!(tree(&[("a", 2)]), Err(TreeError::Path("a".to_owned())));
    assert_eq!(tree(&[("/a", 6)]), Err(TreeError::Future("/a".to_owned())));
}

#[test]
fn a_value_beyond_the_limit_is_refused() {
    use crate::store::MAX_DATA_BYTES;
    let mut tree = Tree::new();
    let mut create = |len| {
        tree.apply(SessionId::NONE, &[Op::create("/a", vec![0; len], CreateMode::Persistent)], Millis(0))
    };
    assert_eq!(create(MAX_DATA_BYTES + 1).map(drop), Err(OpFailure { index: 0, error: OpError::TooLarge }));
    assert!(create(MAX_DATA_BYTES).is_ok());
}

#[test]
fn watches_of_a_session_that_is_over_are_dropped() {
    let mut watches = Watches::default();
    watches.set(SessionId(1), "/a", WatchKind::Data);
    watches.set(SessionId(2), "/a", WatchKind::Data);
    watches.set(SessionId(1), "/a", WatchKind::Children);
    assert_eq!(watches.len(), 3);
    watches.drop_session(SessionId(1));
    assert_eq!(watches.len(), 1);
    let change = Change { path: Arc::from("/a"), kind: ChangeKind::DataChanged };
    let told: Vec<SessionId> = watches.fire(&[change]).into_iter().map(|event| event.session).collect();
    assert_eq!(told, [SessionId(2)]);
    assert!(watches.is_empty());
}
