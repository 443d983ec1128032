//! What a crash leaves of a disk.

use super::CrashMode;
use super::sparse::SparseBytes;
use super::world::{DataChange, DirNode, FileNode, NameChange, Node, World};

/// Disks write sectors of this many bytes whole or not at all.
const SECTOR: usize = 512;

/// How much of the unsynced changes of one kind survives a power loss.
#[derive(Clone, Copy)]
enum Survival {
    Nothing,
    Everything,
    /// The first ones, the last of them torn at a byte.
    Prefix,
    /// Each on its own, writes sector by sector.
    Any,
}

/// The disk that is found after a crash of `world`.
pub(super) fn after_crash(world: &World, mode: CrashMode) -> World {
    let mut rng = match mode {
        // What was written is still in the page cache, and still not durable.
        CrashMode::ProcessKill => return world.fork(),
        CrashMode::LoseUnsynced => None,
        CrashMode::PowerLoss { seed } => Some(fastrand::Rng::with_seed(seed)),
    };
    let mut survival = || match &mut rng {
        None => (Survival::Nothing, fastrand::Rng::with_seed(0)),
        Some(rng) => {
            let kind = match rng.u8(0..4) {
                0 => Survival::Nothing,
                1 => Survival::Everything,
                2 => Survival::Prefix,
                _ => Survival::Any,
            };
            (kind, rng.fork())
        }
    };
    let mut after = World::default();
    after.next_inode = world.next_inode;
    after.now_ms = world.now_ms;
    for (inode, node) in &world.nodes {
        let (kind, rng) = survival();
        let node = match node {
            Node::File(file) => Node::File(surviving_file(file, kind, rng)),
            Node::Dir(dir) => Node::Dir(DirNode { durable: dir.durable.clone(), ..DirNode::default() }),
        };
        after.nodes.insert(*inode, node);
    }
    let (kind, rng) = survival();
    for change in surviving_names(&world.pending_names, kind, rng) {
        after.set_durable_names(change);
    }
    for node in after.nodes.values_mut() {
        if let Node::Dir(dir) = node {
            dir.current = dir.durable.clone();
        }
    }
    after
}

fn surviving_file(file: &FileNode, kind: Survival, mut rng: fastrand::Rng) -> FileNode {
    let mut content = file.durable.clone();
    let kept = kept_prefix(file.pending.len(), kind, &mut rng);
    for (at, change) in file.pending.iter().enumerate() {
        match kind {
            Survival::Any => survive_in_sectors(change, &mut content, &mut rng),
            _ if at < kept => change.apply(&mut content),
            Survival::Prefix if at == kept => survive_torn(change, &mut content, &mut rng),
            _ => {}
        }
    }
    FileNode {
        current: content.clone(),
        durable: content,
        pending: Vec::new(),
        modified_ms: file.modified_ms,
    }
}

fn kept_prefix(count: usize, kind: Survival, rng: &mut fastrand::Rng) -> usize {
    match kind {
        Survival::Everything => count,
        Survival::Prefix => rng.usize(0..=count),
        Survival::Nothing | Survival::Any => 0,
    }
}

fn survive_torn(change: &DataChange, content: &mut SparseBytes, rng: &mut fastrand::Rng) {
    if let DataChange::Write { at, bytes } = change {
        content.write_at(bytes.get(..rng.usize(0..=bytes.len())).unwrap_or_default(), *at);
    }
}

fn survive_in_sectors(change: &DataChange, content: &mut SparseBytes, rng: &mut fastrand::Rng) {
    let DataChange::Write { at, bytes } = change else {
        if rng.bool() {
            change.apply(content);
        }
        return;
    };
    if rng.bool() {
        // The new length may be durable although the bytes are not: they read as zeros then.
        let end = at.saturating_add(bytes.len() as u64);
        content.set_len(content.len().max(end));
    }
    let first = SECTOR - (*at % SECTOR as u64) as usize;
    let (head, rest) = bytes.split_at(first.min(bytes.len()));
    let mut position = *at;
    for sector in std::iter::once(head).chain(rest.chunks(SECTOR)) {
        if rng.bool() {
            content.write_at(sector, position);
        }
        position = position.saturating_add(sector.len() as u64);
    }
}

fn surviving_names(
    pending: &[NameChange],
    kind: Survival,
    mut rng: fastrand::Rng,
) -> impl Iterator<Item = &NameChange> {
    let kept = kept_prefix(pending.len(), kind, &mut rng);
    pending.iter().enumerate().filter_map(move |(at, change)| {
        let survives = match kind {
            Survival::Any => rng.bool(),
            _ => at < kept,
        };
        survives.then_some(change)
    })
}
