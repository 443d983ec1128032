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
    let mut kept = Vec::new();
    let mut swaps = Vec::new();
    for file in files {
        match file.transient {
            None => kept.push(file),
            Some(Transient::Swap) if unfinished.is_none_or(|offset| file.offset < offset) => swaps.push(file),
            Some(_) => remove(&file)?,
        }
    }
    if swaps.is_empty() {
        return Ok(kept);
    }
    if let Some(replaced) = replaced_range(dir, &swaps, next_offset)? {
        let (gone, stay) = kept.into_iter().partition(|file| replaced.contains(&file.offset));
        let gone: Vec<SegmentFileName> = gone;
        gone.iter().try_for_each(remove)?;
        kept = stay;
    }
    for swap in swaps {
        let name = SegmentFileName { transient: None, ..swap };
        disk.rename(&dir.join(swap.to_string()), &dir.join(name.to_string()))?;
        kept.retain(|file| *file != name);
        kept.push(name);
    }
    // The renames decide which segments count; a later crash must not bring the old ones back.
    disk.sync_dir(dir)?;
    kept.sort();
    Ok(kept)
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
    use crate::disk::crash::CrashDisk;

    const DIR: &str = "/t-0";

    /// The names left of `names`, when every log file ends 100 offsets after its base.
    fn cleaned(names: &[&str]) -> Vec<String> {
        let disk = CrashDisk::new();
        disk.create_dir_all(Path::new(DIR)).unwrap();
        for name in names {
            let file = disk.open(&Path::new(DIR).join(long(name)), OpenOptions::CREATE).unwrap();
            file.write_at(name.as_bytes(), 0).unwrap();
        }
        let files = names.iter().map(|name| SegmentFileName::parse(&long(name)).unwrap()).collect();
        let next = |path: &Path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            Ok(SegmentFileName::parse(name).unwrap().offset.plus(100))
        };
        let kept = clean_up(&disk, Path::new(DIR), files, next).unwrap();
        let mut kept: Vec<String> = kept.iter().map(ToString::to_string).collect();
        kept.sort();
        let on_disk: Vec<String> =
            disk.list_dir(Path::new(DIR)).unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(kept, on_disk);
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
    fn a_complete_replacement_removes_the_old_files_in_its_range_and_takes_their_names() {
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
        assert_eq!(cleaned(&names), ["5.index", "5.log", "105.log", "105.snapshot"]);
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
}
