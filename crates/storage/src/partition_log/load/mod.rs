//! Opening a log: finishing what a crash interrupted, recovering what was not flushed, and finding the offsets,
//! epochs and producers again.
//!
//! After a clean stop of an idle log this reads a directory, the sizes of its files, and the end of one log
//! file. After a crash every batch from the segment of the recovery point on is read. Whatever a crash left, a
//! log opens; only the disk itself, an unsupported format, or files that someone exchanged stop it.

mod epochs;
mod leftovers;
mod overflow;
pub(super) mod producers;
mod recover;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use kernel::epochs::EpochHistory;
use kernel::producer::ProducerStates;
use wire::types::{Millis, Now, Offset, TopicId, TopicPartition};

use super::epoch_file::EpochFile;
use super::loss::Loss;
use super::positions::{LogEnd, Positions, Published};
use super::snapshots::Snapshots;
use super::topic_id::TopicIdFile;
use super::{LogContext, PartitionLog, Writer, new_jitter, segment_config};
use crate::boot::Boot;
use crate::dir_health::StorageError;
use crate::disk::handles::DirPath;
use crate::log_config::LogConfig;
use crate::names::{SegmentFile, SegmentFileName};
use crate::partition_metadata::{PartitionMetadataError, read_topic_id};
use crate::segment::{INDEXES, Segment, SegmentConfig, SegmentDir, SegmentError};

/// What is known of a log before it is opened.
#[derive(Clone, Debug)]
pub struct OpenLog {
    /// The partition.
    pub partition: TopicPartition,
    /// Its directory, which exists.
    pub dir: PathBuf,
    /// The settings.
    pub config: Arc<LogConfig>,
    /// Whether the log directory was closed in order.
    pub clean: bool,
    /// Whether the machine has been up since the log was written last.
    pub boot: Boot,
    /// The recovery point of the checkpoint; 0 if it has none.
    pub recovery_point: Offset,
    /// The log start of the checkpoint; 0 if it has none.
    pub log_start: Offset,
    /// The high watermark of the checkpoint; 0 if it has none.
    pub high_watermark: Offset,
    /// The first dirty offset of the cleaner's checkpoint, if it has one: everything below is compacted.
    pub first_dirty: Option<Offset>,
    /// `producer.id.expiration.ms`.
    pub producer_expiration: Millis,
    /// The time.
    pub now: Now,
}

/// Why a log does not open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The log directory is offline, since now or since before.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The files of this log are not what this broker can serve; the other logs are not concerned.
    #[error("log {partition} cannot be loaded: {reason}")]
    Unusable {
        /// The partition.
        partition: TopicPartition,
        /// What is wrong, and with which file.
        reason: String,
    },
}

/// Why loading stopped.
#[derive(Debug)]
enum Failure {
    Io(io::Error),
    Segment(SegmentError),
    TopicId(PartitionMetadataError),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<SegmentError> for Failure {
    fn from(error: SegmentError) -> Self {
        Self::Segment(error)
    }
}

impl Failure {
    fn into_load_error(self, context: &LogContext, partition: &TopicPartition) -> LoadError {
        let offline = |error: &io::Error| context.health.fail(&format!("load {partition}"), error).into();
        let unusable = |reason: String| LoadError::Unusable { partition: partition.clone(), reason };
        match self {
            Self::Io(error) | Self::TopicId(PartitionMetadataError::Io(error)) => offline(&error),
            Self::Segment(error) if error.is_io() => offline(&io::Error::other(error)),
            Self::Segment(error) => unusable(error.to_string()),
            Self::TopicId(error) => unusable(error.to_string()),
        }
    }
}

/// What loading works with.
struct Loader<'a> {
    args: &'a OpenLog,
    dir: SegmentDir,
    config: SegmentConfig,
    files: Vec<SegmentFileName>,
    snapshots: Snapshots,
}

/// Everything of a log but what is shared.
struct Loaded {
    segments: Vec<Arc<Segment>>,
    positions: Positions,
    producers: ProducerStates,
    snapshots: Snapshots,
    epochs: EpochFile,
    topic_id: TopicIdFile,
    has_gaps: bool,
}

impl PartitionLog {
    /// Opens the log in an existing directory.
    pub fn open(context: &LogContext, args: OpenLog) -> Result<Arc<Self>, LoadError> {
        context.health.check()?;
        let dir = SegmentDir { files: context.files.clone(), path: DirPath::new(&args.dir) };
        let mut loader = Loader {
            args: &args,
            dir: dir.clone(),
            config: segment_config(&args.config),
            files: Vec::new(),
            snapshots: Snapshots::default(),
        };
        let loaded =
            loader.load_splitting().map_err(|error| error.into_load_error(context, &args.partition))?;
        let has_gaps = loaded.has_gaps;
        let loss = Loss::of(args.high_watermark, loaded.positions.log_end, args.clean);
        let log = Self::assemble(context, args.partition, dir, args.config, loaded, !args.clean);
        if let Some(loss) = loss {
            log.loss.get_or_init(|| loss);
        }
        if let Some(offset) = args.first_dirty {
            log.restore_first_dirty(offset);
        }
        if has_gaps {
            log.flush_to(log.positions().log_end)?;
        }
        Ok(log)
    }

    /// Creates the directory and an empty log in it, which starts at offset 0.
    pub fn create(
        context: &LogContext,
        partition: TopicPartition,
        dir: &Path,
        config: Arc<LogConfig>,
        topic_id: TopicId,
        now: Now,
    ) -> Result<Arc<Self>, LoadError> {
        context.health.check()?;
        let dir = SegmentDir { files: context.files.clone(), path: DirPath::new(dir) };
        let loaded = create_files(&dir, &config, topic_id, now);
        let loaded = loaded.map_err(|failure| failure.into_load_error(context, &partition))?;
        Ok(Self::assemble(context, partition, dir, config, loaded, true))
    }

    fn assemble(
        context: &LogContext,
        partition: TopicPartition,
        dir: SegmentDir,
        config: Arc<LogConfig>,
        loaded: Loaded,
        dir_name_unsynced: bool,
    ) -> Arc<Self> {
        let Loaded { segments, positions, mut producers, snapshots, epochs, topic_id, has_gaps: _ } = loaded;
        producers.on_high_watermark(positions.high_watermark);
        let positions = positions.with_first_unstable(producers.first_unstable_offset());
        let end = segments.last().map(|active| LogEnd { base: active.base(), position: active.size() });
        let end = end.unwrap_or(LogEnd { base: positions.log_end, position: 0 });
        let writer = Writer {
            producers,
            snapshots,
            epochs,
            jitter: new_jitter(&config),
            flush_target: None,
            unflushed_since: None,
            topic_id,
            dir_name_unsynced,
            active_is_ready: false,
            truncations: 0,
            closed: false,
        };
        let epochs = writer.epochs.shared();
        Arc::new_cyclic(|this| Self {
            partition,
            dir,
            context: context.clone(),
            config: RwLock::new(config),
            published: Published::new(positions, end),
            segments: RwLock::new(segments),
            writer: Mutex::new(writer),
            producers_counted: AtomicUsize::new(0),
            epochs,
            flushing: Mutex::new(()),
            replacing: Mutex::new(()),
            compaction: Mutex::default(),
            failure: OnceLock::new(),
            loss: OnceLock::new(),
            this: this.clone(),
        })
    }
}

fn create_files(dir: &SegmentDir, config: &LogConfig, id: TopicId, now: Now) -> Result<Loaded, Failure> {
    dir.files.disk().create_dir_all(&dir.path.get())?;
    let segment = Segment::create(dir, Offset(0), segment_config(config), Millis(now.wall_ms))?;
    let mut topic_id = TopicIdFile::default();
    if !id.is_zero() {
        topic_id.write_first(dir, id)?;
    }
    Ok(Loaded {
        segments: vec![Arc::new(segment)],
        positions: Positions::default(),
        producers: ProducerStates::new(Offset(0)),
        snapshots: Snapshots::default(),
        epochs: EpochFile::new(),
        topic_id,
        has_gaps: false,
    })
}

/// A log file up to this size is read from its start to find its end, rather than from where its index points.
const SMALL_SEGMENT_BYTES: u64 = 64 << 10;

/// The end of a segment that needs no recovery. Fails if its offsets do not fit it.
fn end_of(segment: &Segment) -> Result<Offset, SegmentError> {
    let (base, end) = (segment.base(), read_end(segment)?);
    let offset = end.plus(-1);
    if end > base && !segment.covers(offset) {
        return Err(SegmentError::OffsetOverflow { base, offset });
    }
    Ok(end)
}

fn read_end(segment: &Segment) -> Result<Offset, SegmentError> {
    if segment.size() <= SMALL_SEGMENT_BYTES {
        let mut end = segment.base();
        let mut scan = if segment.is_empty() { return Ok(end) } else { segment.scan_at(0)? };
        while let Ok(Some(batch)) = scan.next_batch() {
            end = batch.header.next_offset();
        }
        if scan.position() == segment.size() {
            return Ok(end);
        }
    }
    segment.next_offset()
}

impl Loader<'_> {
    /// Loads the log. A segment whose offsets do not fit it is split, and loading begins anew.
    fn load_splitting(&mut self) -> Result<Loaded, Failure> {
        loop {
            match self.load() {
                Err(failure) if self.split_overflowed(&failure)? => {}
                result => return result,
            }
        }
    }

    fn load(&mut self) -> Result<Loaded, Failure> {
        self.list_files()?;
        let mut segments = self.open_segments()?;
        let on_disk = epochs::read(&self.dir)?;
        let mut history = on_disk.clone().unwrap_or_default();
        let recovery = self.recover_segments(&mut segments, &mut history)?;
        let mut log_end = match (recovery.log_end, segments.last()) {
            (Some(log_end), _) => log_end,
            (None, Some(last)) => end_of(last)?,
            (None, None) => self.args.log_start,
        };
        let mut recovered = recovery.producers;
        let reset = !segments.is_empty() && log_end < self.args.log_start;
        if reset {
            self.discard(&mut segments, log_end)?;
            (log_end, recovered) = (self.args.log_start, None);
            history.clear();
        }
        if segments.is_empty() {
            segments.push(self.first_segment()?);
        }
        let first = segments.first().map_or(log_end, |segment| segment.base());
        let log_start = self.args.log_start.max(first);
        let lost = on_disk.as_ref().is_none_or(EpochHistory::is_empty);
        let complete = history.earliest().is_some_and(|entry| entry.start <= log_start);
        if !complete && !reset && log_end > log_start {
            let from = if lost { None } else { history.earliest() };
            history = epochs::with_head(&segments, from.map_or(log_end, |entry| entry.start), history)?;
        }
        let epochs = self.keep_epochs(history, on_disk, log_end)?;
        let producers = self.find_producers(&segments, log_start, log_end, recovered, reset)?;
        let trusted = self.args.clean && !reset && !recovery.dropped;
        let recovery_point = if trusted { log_end } else { self.args.recovery_point.min(log_end) };
        let high_watermark = self.args.high_watermark.clamp(log_start, log_end);
        let positions =
            Positions { log_start, last_stable: log_start, high_watermark, log_end, recovery_point };
        let topic_id = self.read_topic_id(log_end > log_start)?;
        let snapshots = std::mem::take(&mut self.snapshots);
        let has_gaps = recovery.has_gaps;
        Ok(Loaded { segments, positions, producers, snapshots, epochs, topic_id, has_gaps })
    }

    /// Lists the directory, and settles what a crash left in the middle.
    fn list_files(&mut self) -> Result<(), Failure> {
        let path = self.dir.path.get();
        let disk = self.dir.files.disk().clone();
        let entries = disk.list_dir(&path)?;
        let names = entries.iter().filter(|entry| !entry.is_dir);
        let names: Vec<_> = names.filter_map(|entry| SegmentFileName::parse(&entry.name)).collect();
        self.files = leftovers::clean_up(&*disk, &path, names, |swap| self.end_of_swap(swap))?;
        let has_log = |files: &[SegmentFileName], base| {
            files.iter().any(|name| name.offset == base && name.file == SegmentFile::Log)
        };
        let (kept, orphans): (Vec<SegmentFileName>, Vec<SegmentFileName>) = self
            .files
            .iter()
            .copied()
            .partition(|name| name.file == SegmentFile::Snapshot || has_log(&self.files, name.offset));
        for orphan in orphans {
            tracing::warn!(partition = %self.args.partition, file = %orphan, "index without a log is removed");
            disk.remove_file(&path.join(orphan.to_string()))?;
        }
        self.files = kept;
        self.files.sort_unstable();
        self.list_snapshots()
    }

    /// Whether the directory has a file, as far as it was listed.
    fn has_file(&self, base: Offset, file: SegmentFile) -> bool {
        self.files.binary_search(&SegmentFileName::new(base, file)).is_ok()
    }

    /// Snapshots belong to the bases of segments; of others only the last one, taken at a clean stop, is kept.
    fn list_snapshots(&mut self) -> Result<(), Failure> {
        let of = |kind| self.files.iter().filter(move |name| name.file == kind).map(|name| name.offset);
        self.snapshots = Snapshots::listed(of(SegmentFile::Snapshot));
        let bases: Vec<Offset> = of(SegmentFile::Log).collect();
        let last_base = bases.iter().max().copied();
        let strays = self.snapshots.offsets().iter().filter(|offset| !bases.contains(offset));
        let kept = strays.max().filter(|stray| last_base.is_none_or(|base| **stray > base)).copied();
        let goes = |offset: Offset| !bases.contains(&offset) && Some(offset) != kept;
        Ok(self.snapshots.remove_where(&self.dir, goes)?)
    }

    /// The end of a log file that waits to take its place.
    fn end_of_swap(&self, path: &Path) -> io::Result<Offset> {
        let name = path.file_name().and_then(|name| SegmentFileName::parse(&name.to_string_lossy()));
        let Some(name) = name else { return Ok(Offset(0)) };
        let now = Millis(self.args.now.wall_ms);
        let segment = Segment::open(&self.dir, name.offset, name.transient, self.config, now);
        let end = segment.and_then(|segment| {
            let mut scan = segment.scan_at(0)?;
            let mut end = segment.base();
            // Unreadable bytes are dealt with when the segment has its name.
            while let Ok(Some(batch)) = scan.next_batch() {
                end = batch.header.next_offset();
            }
            Ok(end)
        });
        end.map_err(io::Error::other)
    }

    fn open_segments(&self) -> Result<Vec<Arc<Segment>>, Failure> {
        let logs = self.files.iter().filter(|name| name.file == SegmentFile::Log);
        let mut bases: Vec<Offset> = logs.map(|name| name.offset).collect();
        bases.sort_unstable();
        let now = Millis(self.args.now.wall_ms);
        let open = |base| {
            let segment = Segment::open(&self.dir, base, None, self.config, now)?;
            let absent = INDEXES.into_iter().filter(|kind| !self.has_file(base, *kind));
            absent.for_each(|kind| segment.note_absent(kind));
            Ok::<_, SegmentError>(Arc::new(segment))
        };
        Ok(bases.into_iter().map(open).collect::<Result<_, _>>()?)
    }

    /// The log ends below its start: its files were removed or exchanged by hand. All of it goes.
    fn discard(&mut self, segments: &mut Vec<Arc<Segment>>, log_end: Offset) -> Result<(), Failure> {
        tracing::error!(
            partition = %self.args.partition, %log_end, log_start = %self.args.log_start,
            "the log ends below its start; all segments are removed and it begins anew at its start"
        );
        for segment in segments.drain(..) {
            segment.delete_files()?;
        }
        Ok(self.snapshots.remove_where(&self.dir, |_| true)?)
    }

    fn first_segment(&self) -> Result<Arc<Segment>, Failure> {
        let now = Millis(self.args.now.wall_ms);
        Ok(Arc::new(Segment::create(&self.dir, self.args.log_start, self.config, now)?))
    }

    /// The epochs within the log. Their file is written again if it lacks some of them.
    fn keep_epochs(
        &self,
        mut history: EpochHistory,
        on_disk: Option<EpochHistory>,
        log_end: Offset,
    ) -> Result<EpochFile, Failure> {
        let as_read = on_disk.as_ref() == Some(&history);
        history.truncate_from_end(log_end);
        history.truncate_from_start(self.args.log_start);
        let mut file = EpochFile::loaded(history, on_disk);
        if !as_read {
            file.write(&self.dir)?;
        }
        if !self.args.clean {
            file.mark_unsynced();
        }
        Ok(file)
    }

    fn find_producers(
        &mut self,
        segments: &[Arc<Segment>],
        log_start: Offset,
        log_end: Offset,
        recovered: Option<ProducerStates>,
        reset: bool,
    ) -> Result<ProducerStates, Failure> {
        if reset {
            return Ok(ProducerStates::new(log_end));
        }
        let none_at_all = self.snapshots.offsets().is_empty();
        let goes = |at: Offset| at > log_end || (at <= log_start && at != log_end);
        let offsets = log_start..log_end;
        if let Some(mut states) = recovered {
            // The next start can find the producers again as this one did, unless a snapshot that it would need goes.
            if self.snapshots.offsets().iter().any(|at| goes(*at)) {
                producers::take_at_end(&self.dir, &mut self.snapshots, &mut states, offsets)?;
            }
            self.snapshots.remove_where(&self.dir, goes)?;
            states.set_map_end(log_end);
            return Ok(states);
        }
        self.snapshots.remove_where(&self.dir, goes)?;
        if none_at_all && self.args.clean {
            // Closed in order by a broker that kept no producers: there are none.
            return Ok(self.no_producers(segments, offsets)?);
        }
        let (now, expiration) = (self.args.now, self.args.producer_expiration);
        Ok(producers::rebuild(&self.dir, &mut self.snapshots, segments, offsets, now, expiration)?)
    }

    fn no_producers(
        &mut self,
        segments: &[Arc<Segment>],
        offsets: std::ops::Range<Offset>,
    ) -> io::Result<ProducerStates> {
        let mut states = ProducerStates::new(offsets.start);
        for segment in segments.iter().filter(|segment| segment.base() > offsets.start) {
            states.set_map_end(segment.base());
            producers::take_at_base(&self.dir, &mut self.snapshots, segments, &states)?;
        }
        producers::take_at_end(&self.dir, &mut self.snapshots, &mut states, offsets)?;
        Ok(states)
    }

    /// The topic id. A file that a lost power tore counts as absent; after a clean stop it must be whole.
    fn read_topic_id(&self, has_records: bool) -> Result<TopicIdFile, Failure> {
        let path = super::topic_id::path(&self.dir);
        match read_topic_id(&**self.dir.files.disk(), &path) {
            Ok(id) => Ok(TopicIdFile::loaded(id, !self.args.clean)),
            Err(error @ PartitionMetadataError::Io(_)) => Err(Failure::TopicId(error)),
            Err(error) if self.args.clean && has_records => Err(Failure::TopicId(error)),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the topic id is unknown until it is told again");
                Ok(TopicIdFile::default())
            }
        }
    }
}
