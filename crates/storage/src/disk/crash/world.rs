//! The live state of a crash disk: files and directories as inodes, each with what is visible now and
//! what is durable, and the changes between the two in order.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

use super::sparse::SparseBytes;
use super::{DirEntry, Fault, Metadata, OpenOptions, Operation};

/// The number of a file or directory.
pub(super) type Inode = u64;

/// The directory `/`.
const ROOT: Inode = 0;

/// A change of a file's content that is not durable yet.
#[derive(Clone, Debug)]
pub(super) enum DataChange {
    Write { at: u64, bytes: Vec<u8> },
    SetLen(u64),
}

impl DataChange {
    pub(super) fn apply(&self, content: &mut SparseBytes) {
        match self {
            Self::Write { at, bytes } => content.write_at(bytes, *at),
            Self::SetLen(len) => content.set_len(*len),
        }
    }
}

/// A change of names that is not durable yet; its parts happen together.
#[derive(Clone, Debug, Default)]
pub(super) struct NameChange(pub(super) Vec<(Inode, String, Option<Inode>)>);

#[derive(Clone, Debug, Default)]
pub(super) struct FileNode {
    pub(super) current: SparseBytes,
    pub(super) durable: SparseBytes,
    pub(super) pending: Vec<DataChange>,
    pub(super) modified_ms: i64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct DirNode {
    pub(super) current: BTreeMap<String, Inode>,
    pub(super) durable: BTreeMap<String, Inode>,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    File(FileNode),
    Dir(DirNode),
}

/// Everything on the disk, and what is to happen to it.
#[derive(Debug)]
pub(super) struct World {
    pub(super) nodes: BTreeMap<Inode, Node>,
    pub(super) next_inode: Inode,
    pub(super) pending_names: Vec<NameChange>,
    pub(super) faults: Vec<Fault>,
    pub(super) locks: BTreeSet<PathBuf>,
    pub(super) now_ms: i64,
    pub(super) changes: u64,
    pub(super) opens: u64,
    pub(super) syncs: u64,
    crash_at: Option<u64>,
    dead: bool,
}

impl Default for World {
    fn default() -> Self {
        Self {
            nodes: BTreeMap::from([(ROOT, Node::Dir(DirNode::default()))]),
            next_inode: ROOT + 1,
            pending_names: Vec::new(),
            faults: Vec::new(),
            locks: BTreeSet::new(),
            now_ms: 0,
            changes: 0,
            opens: 0,
            syncs: 0,
            crash_at: None,
            dead: false,
        }
    }
}

/// How an operation goes on.
enum Fate {
    Succeeds,
    Fails(io::Error),
}

impl World {
    pub(super) fn kill(&mut self) {
        self.dead = true;
    }

    pub(super) fn fork(&self) -> Self {
        Self {
            nodes: self.nodes.clone(),
            next_inode: self.next_inode,
            pending_names: self.pending_names.clone(),
            now_ms: self.now_ms,
            ..Self::default()
        }
    }

    pub(super) fn crash_at(&mut self, at: u64) {
        self.crash_at = Some(self.changes.saturating_add(at));
    }

    /// Whether an operation that changes nothing may happen.
    fn look(&mut self, operation: Operation, path: &Path) -> io::Result<()> {
        if self.dead {
            return Err(io::Error::other("the disk has crashed"));
        }
        let path = path.to_string_lossy();
        for fault in &mut self.faults {
            if fault.operation != operation || !path.contains(&fault.path_contains) {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
            } else if fault.times > 0 {
                fault.times -= 1;
                return Err(fault.kind.into());
            }
        }
        Ok(())
    }

    /// Whether an operation that changes or syncs something may happen; counts it.
    fn change(&mut self, operation: Operation, path: &Path) -> Fate {
        if let Err(error) = self.look(operation, path) {
            return Fate::Fails(error);
        }
        if self.crash_at.is_some_and(|at| self.changes >= at) {
            self.dead = true;
            return Fate::Fails(io::Error::other("the disk crashed at this operation"));
        }
        self.changes += 1;
        Fate::Succeeds
    }

    fn changed(&mut self, operation: Operation, path: &Path) -> io::Result<()> {
        match self.change(operation, path) {
            Fate::Succeeds => Ok(()),
            Fate::Fails(error) => Err(error),
        }
    }

    fn find(&self, path: &Path) -> Option<Inode> {
        let mut at = ROOT;
        for part in path.components() {
            if let Component::Normal(name) = part {
                let Some(Node::Dir(dir)) = self.nodes.get(&at) else { return None };
                at = *dir.current.get(&*name.to_string_lossy())?;
            }
        }
        Some(at)
    }

    fn inode(&self, path: &Path) -> io::Result<Inode> {
        self.find(path).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("{} does not exist", path.display()))
        })
    }

    /// The directory that holds `path`, and the name in it.
    fn place(&self, path: &Path) -> io::Result<(Inode, String)> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let parent = self.inode(parent)?;
        self.dir(parent)?;
        Ok((parent, name.to_string_lossy().into_owned()))
    }

    fn dir(&self, inode: Inode) -> io::Result<&DirNode> {
        match self.nodes.get(&inode) {
            Some(Node::Dir(dir)) => Ok(dir),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn file(&self, inode: Inode) -> io::Result<&FileNode> {
        match self.nodes.get(&inode) {
            Some(Node::File(file)) => Ok(file),
            _ => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn file_mut(&mut self, inode: Inode) -> io::Result<&mut FileNode> {
        match self.nodes.get_mut(&inode) {
            Some(Node::File(file)) => Ok(file),
            _ => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn add(&mut self, node: Node) -> Inode {
        let inode = self.next_inode;
        self.next_inode += 1;
        self.nodes.insert(inode, node);
        inode
    }

    /// Changes visible names; they become durable by `sync_dir`.
    fn set_names(&mut self, change: NameChange) {
        for (dir, name, target) in &change.0 {
            if let Some(Node::Dir(dir)) = self.nodes.get_mut(dir) {
                match target {
                    Some(inode) => dir.current.insert(name.clone(), *inode),
                    None => dir.current.remove(name),
                };
            }
        }
        self.pending_names.push(change);
    }

    pub(super) fn create_dir_all(&mut self, path: &Path) -> io::Result<()> {
        if let Some(inode) = self.find(path) {
            self.look(Operation::CreateDir, path)?;
            return self.dir(inode).map(|_| ());
        }
        if let Some(parent) = path.parent() {
            self.create_dir_all(parent)?;
        }
        self.changed(Operation::CreateDir, path)?;
        let (parent, name) = self.place(path)?;
        let inode = self.add(Node::Dir(DirNode::default()));
        self.set_names(NameChange(vec![(parent, name, Some(inode))]));
        Ok(())
    }

    pub(super) fn open(&mut self, path: &Path, options: OpenOptions) -> io::Result<Inode> {
        self.look(Operation::Open, path)?;
        self.opens += 1;
        let inode = match self.find(path) {
            Some(inode) => inode,
            None if options.create => {
                let (parent, name) = self.place(path)?;
                self.changed(Operation::Open, path)?;
                let file = FileNode { modified_ms: self.now_ms, ..FileNode::default() };
                let inode = self.add(Node::File(file));
                self.set_names(NameChange(vec![(parent, name, Some(inode))]));
                inode
            }
            None => self.inode(path)?,
        };
        if options.truncate && self.file(inode)?.current.len() > 0 {
            self.set_len(inode, path, 0)?;
        }
        self.file(inode)?;
        Ok(inode)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let inode = self.inode(from)?;
        let (from_dir, from_name) = self.place(from)?;
        let (to_dir, to_name) = self.place(to)?;
        if let Some(Node::Dir(replaced)) = self.find(to).and_then(|inode| self.nodes.get(&inode))
            && !replaced.current.is_empty()
        {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        self.changed(Operation::Rename, from)?;
        self.set_names(NameChange(vec![(from_dir, from_name, None), (to_dir, to_name, Some(inode))]));
        Ok(())
    }

    pub(super) fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        self.file(self.inode(path)?)?;
        self.unlink(path)
    }

    pub(super) fn remove_dir_all(&mut self, path: &Path) -> io::Result<()> {
        let names: Vec<String> = self.dir(self.inode(path)?)?.current.keys().cloned().collect();
        for name in names {
            let child = path.join(name);
            match self.dir(self.inode(&child)?) {
                Ok(_) => self.remove_dir_all(&child)?,
                Err(_) => self.unlink(&child)?,
            }
        }
        self.unlink(path)
    }

    fn unlink(&mut self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.place(path)?;
        self.changed(Operation::Remove, path)?;
        self.set_names(NameChange(vec![(dir, name, None)]));
        Ok(())
    }

    pub(super) fn list_dir(&mut self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.look(Operation::List, path)?;
        let dir = self.dir(self.inode(path)?)?;
        let is_dir = |inode| matches!(self.nodes.get(inode), Some(Node::Dir(_)));
        Ok(dir.current.iter().map(|(name, at)| DirEntry { name: name.clone(), is_dir: is_dir(at) }).collect())
    }

    pub(super) fn sync_dir(&mut self, path: &Path) -> io::Result<()> {
        let inode = self.inode(path)?;
        self.dir(inode)?;
        self.changed(Operation::SyncDir, path)?;
        self.syncs += 1;
        let (now, later) = std::mem::take(&mut self.pending_names)
            .into_iter()
            .partition(|change| change.0.iter().any(|(dir, ..)| *dir == inode));
        self.pending_names = later;
        for change in now {
            self.set_durable_names(&change);
        }
        Ok(())
    }

    /// Makes one change of names durable.
    pub(super) fn set_durable_names(&mut self, change: &NameChange) {
        for (dir, name, target) in &change.0 {
            if let Some(Node::Dir(dir)) = self.nodes.get_mut(dir) {
                match target {
                    Some(inode) => dir.durable.insert(name.clone(), *inode),
                    None => dir.durable.remove(name),
                };
            }
        }
    }

    pub(super) fn metadata(&mut self, path: &Path) -> io::Result<Metadata> {
        self.look(Operation::Read, path)?;
        match self.nodes.get(&self.inode(path)?) {
            Some(Node::File(file)) => {
                Ok(Metadata { len: file.current.len(), is_dir: false, modified_ms: file.modified_ms })
            }
            _ => Ok(Metadata { len: 0, is_dir: true, modified_ms: 0 }),
        }
    }

    pub(super) fn set_modified(&mut self, path: &Path, modified_ms: i64) -> io::Result<()> {
        let inode = self.inode(path)?;
        self.file_mut(inode)?.modified_ms = modified_ms;
        Ok(())
    }

    pub(super) fn read(&mut self, inode: Inode, path: &Path, buf: &mut [u8], at: u64) -> io::Result<usize> {
        self.look(Operation::Read, path)?;
        Ok(self.file(inode)?.current.read_at(buf, at))
    }

    pub(super) fn write(&mut self, inode: Inode, path: &Path, bytes: Vec<u8>, at: u64) -> io::Result<()> {
        let was_dead = self.dead;
        match self.change(Operation::Write, path) {
            Fate::Succeeds => self.apply(inode, DataChange::Write { at, bytes }),
            Fate::Fails(error) => {
                // A write that fails, or during which the process dies, was half done.
                let half = bytes.len() / 2;
                if !was_dead && let Some(done) = bytes.get(..half) {
                    self.apply(inode, DataChange::Write { at, bytes: done.to_vec() })?;
                }
                Err(error)
            }
        }
    }

    pub(super) fn set_len(&mut self, inode: Inode, path: &Path, len: u64) -> io::Result<()> {
        self.changed(Operation::SetLen, path)?;
        self.apply(inode, DataChange::SetLen(len))
    }

    fn apply(&mut self, inode: Inode, change: DataChange) -> io::Result<()> {
        let now_ms = self.now_ms;
        let file = self.file_mut(inode)?;
        change.apply(&mut file.current);
        file.pending.push(change);
        file.modified_ms = now_ms;
        Ok(())
    }

    pub(super) fn len(&self, inode: Inode) -> io::Result<u64> {
        if self.dead {
            return Err(io::Error::other("the disk has crashed"));
        }
        Ok(self.file(inode)?.current.len())
    }

    pub(super) fn sync(&mut self, inode: Inode, path: &Path) -> io::Result<()> {
        let was_dead = self.dead;
        let fate = self.change(Operation::Sync, path);
        let crashed = self.dead && !was_dead;
        let file = self.file_mut(inode)?;
        match fate {
            Fate::Succeeds => {
                for change in std::mem::take(&mut file.pending) {
                    change.apply(&mut file.durable);
                }
                self.syncs += 1;
                Ok(())
            }
            Fate::Fails(error) => {
                // As on Linux: the pages count as clean after the error, but never reached the disk.
                if !was_dead && !crashed {
                    file.pending.clear();
                }
                Err(error)
            }
        }
    }
}
