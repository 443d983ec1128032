//! Files that a crash left in the middle of a compaction, a split of a segment or a deletion. After this a
//! partition's directory is as it was before the replacement, or as it is after it, never in between.
//!
//! A replacement writes `.cleaned` files, renames them in descending order of their offsets to `.swap`, marks
//! the old segments `.deleted`, and renames `.swap` to the final names. So a `.cleaned` file that is left means
//! that the set of `.swap` files is incomplete from there on (KAFKA-6264).

use std::io;
use std::path::Path;

use wire::types::Offset;

use crate::disk::Disk;
use crate::names::{SegmentFile, SegmentFileName, Transient};

/// Finishes or takes back what was under way in `dir`, whose segment files are `files`. Returns the names that
/// are there afterwards, sorted. `next_offset` reads the end of a log file, whose path it is given.
pub(super) fn clean_up(
    disk: &dyn Disk,
    dir: &Path,
    files: Vec<SegmentFileName>,
    next_offset: impl Fn(&Path) -> io::Result<Offset>,
) -> io::Result<Vec<SegmentFileName>> {
    if files.iter().all(|file| file.transient.is_none()) {
        return Ok(files);
    }
    let remove = |file: &SegmentFileName| disk.remove_file(&dir.join(file.to_string()));
    let unfinished = files.iter().filter(|file| file.transient == Some(Transient::Cleaned));
    let unfinished = unfinished.map(|file| file.offset).min();
    let (mut kept, mut swaps, mut taken_back, mut gone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for file in files {
        match file.transient {
            None => kept.push(file),
            Some(Transient::Swap) if unfinished.is_none_or(|offset| file.offset < offset) => swaps.push(file),
            Some(Transient::Swap) => taken_back.push(file),
            Some(_) => gone.push(file),
        }
    }
    taken_back.iter().try_for_each(remove)?;
    if !taken_back.is_empty() {
        // As long as one of them may come back, the `.cleaned` file must be there to condemn it.
        disk.sync_dir(dir)?;
    }
    gone.iter().try_for_each(remove)?;
    if !swaps.is_empty() {
        finish(disk, dir, &mut kept, swaps, next_offset)?;
        kept.sort();
    }
    Ok(kept)
}

/// Puts complete `.swap` files in the place of what they replace.
fn finish(
    disk: &dyn Disk,
    dir: &Path,
    kept: &mut Vec<SegmentFileName>,
    mut swaps: Vec<SegmentFileName>,
    next_offset: impl Fn(&Path) -> io::Result<Offset>,
) -> io::Result<()> {
    if let Some(replaced) = replaced_range(dir, &swaps, next_offset)? {
        // What a snapshot says of the producers up to its offset stays true (KAFKA-12520).
        let goes =
            |file: &SegmentFileName| replaced.contains(&file.offset) && file.file != SegmentFile::Snapshot;
        for file in kept.iter().filter(|file| goes(file)) {
            disk.remove_file(&dir.join(file.to_string()))?;
        }
        kept.retain(|file| !goes(file));
        // None of them may come back beside what replaces it.
        disk.sync_dir(dir)?;
    }
    swaps.sort();
    for files in swaps.chunk_by(|one, next| one.offset == next.offset) {
        for swap in files {
            let name = SegmentFileName { transient: None, ..*swap };
            disk.rename(&dir.join(swap.to_string()), &dir.join(name.to_string()))?;
            kept.retain(|file| *file != name);
            kept.push(name);
        }
        // In ascending order: a later crash must find no `.swap` file below a segment that is in its place.
        disk.sync_dir(dir)?;
    }
    Ok(())
}

/// The offsets, first inclusive and last exclusive, that complete `.log.swap` files stand for.
fn replaced_range(
    dir: &Path,
    swaps: &[SegmentFileName],
    next_offset: impl Fn(&Path) -> io::Result<Offset>,
) -> io::Result<Option<std::ops::Range<Offset>>> {
    let mut range: Option<std::ops::Range<Offset>> = None;
    for swap in swaps.iter().filter(|swap| swap.file == SegmentFile::Log) {
        let end = next_offset(&dir.join(swap.to_string()))?;
        range = Some(match range {
            None => swap.offset..end,
            Some(known) => known.start.min(swap.offset)..known.end.max(end),
        });
    }
    Ok(range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::OpenOptions;
    use crate::disk::crash::{CrashDisk, CrashMode};

    const DIR: &str = "/t-0";

    /// A disk with files of these names, all durable.
    fn disk_with(names: &[&str]) -> CrashDisk {
        let disk = CrashDisk::new();
        disk.create_dir_all(Path::new(DIR)).unwrap();
        for name in names {
            let file = disk.open(&Path::new(DIR).join(long(name)), OpenOptions::CREATE).unwrap();
            file.write_at(name.as_bytes(), 0).unwrap();
            file.sync_all().unwrap();
        }
        for dir in [DIR, "/"] {
            disk.sync_dir(Path::new(dir)).unwrap();
        }
        disk
    }

    fn names_on(disk: &CrashDisk) -> Vec<String> {
        disk.list_dir(Path::new(DIR)).unwrap().into_iter().map(|entry| entry.name).collect()
    }

    /// Cleans up, when every log file ends 100 offsets after its base.
    fn clean(disk: &CrashDisk) -> io::Result<Vec<SegmentFileName>> {
        let files = names_on(disk).iter().map(|name| SegmentFileName::parse(name).unwrap()).collect();
        clean_up(disk, Path::new(DIR), files, |path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            Ok(SegmentFileName::parse(name).unwrap().offset.plus(100))
        })
    }

    /// The names left of `names`.
    fn cleaned(names: &[&str]) -> Vec<String> {
        let disk = disk_with(names);
        let mut kept: Vec<String> = clean(&disk).unwrap().iter().map(ToString::to_string).collect();
        kept.sort();
        assert_eq!(kept, names_on(&disk));
        kept.iter().map(|name| name.trim_start_matches('0').to_owned()).collect()
    }

    fn long(name: &str) -> String {
        let (digits, rest) = name.split_once('.').unwrap();
        format!("{:020}.{rest}", digits.parse::<u64>().unwrap())
    }

    #[test]
    fn files_marked_deleted_go() {
        assert_eq!(cleaned(&["5.log", "5.index.deleted", "7.snapshot.deleted"]), ["5.log"]);
    }

    #[test]
    fn an_unfinished_replacement_is_taken_back_from_the_first_cleaned_file_on() {
        let left = cleaned(&["5.log", "5.log.cleaned", "300.log", "300.log.swap", "300.index.swap"]);
        assert_eq!(left, ["5.log", "300.log"]);
    }

    #[test]
    fn a_complete_replacement_below_an_unfinished_one_is_finished() {
        let left = cleaned(&["5.log.swap", "50.log", "300.log.swap", "300.log.cleaned"]);
        assert_eq!(left, ["5.log"]);
    }

    #[test]
    fn a_complete_replacement_removes_the_old_segments_in_its_range_and_takes_their_names() {
        let names = [
            "5.log",
            "5.index",
            "50.log",
            "50.snapshot",
            "105.log",
            "105.snapshot",
            "5.log.swap",
            "5.index.swap",
        ];
        assert_eq!(cleaned(&names), ["5.index", "5.log", "50.snapshot", "105.log", "105.snapshot"]);
    }

    #[test]
    fn an_index_left_over_from_renaming_is_renamed_and_no_segment_goes() {
        let left = cleaned(&["5.log", "5.index.swap", "5.timeindex", "105.log", "105.snapshot"]);
        assert_eq!(left, ["5.index", "5.log", "5.timeindex", "105.log", "105.snapshot"]);
    }

    #[test]
    fn nothing_is_touched_without_leftovers() {
        assert_eq!(cleaned(&["5.log", "5.index"]), ["5.index", "5.log"]);
    }

    /// Lets the disk die at every operation of the clean-up; what the next one leaves is always the same.
    fn survives_crashes(names: &[&str]) {
        let expected = cleaned(names);
        for at in 0.. {
            let disk = disk_with(names);
            disk.crash_at(at);
            let done = clean(&disk).is_ok();
            for seed in 0..40 {
                let after = disk.fork().crash(CrashMode::PowerLoss { seed });
                clean(&after).unwrap();
                let left: Vec<String> =
                    names_on(&after).iter().map(|name| name.trim_start_matches('0').to_owned()).collect();
                assert_eq!(left, expected, "died at {at}, seed {seed}");
            }
            if done {
                break;
            }
        }
    }

    #[test]
    fn a_crash_while_a_replacement_is_taken_back_lets_none_of_it_count() {
        survives_crashes(&["5.log", "100.log", "5.log.cleaned", "150.log.swap", "150.index.swap"]);
    }

    #[test]
    fn a_crash_while_a_replacement_is_ended_brings_none_of_the_old_segments_back() {
        survives_crashes(&["5.log", "50.log", "90.log", "105.log", "5.log.swap"]);
        survives_crashes(&["5.log", "150.log", "300.log", "5.log.swap", "160.log.swap", "250.log.swap"]);
    }
}
