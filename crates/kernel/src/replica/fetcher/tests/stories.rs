//! Stories between brokers, in `tests/scenarios/replica`: what is done stands behind `>`, what comes of it below. With
//! `UPDATE_SCENARIOS=1` the tests write anew what comes of it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::world::World;
use super::*;
use crate::epochs::EpochHistory;

/// Those that lose or mix up records when the high watermark decides where to truncate, as before KIP-101.
pub(super) const DECIDED_BY_EPOCHS: [&str; 9] = [
    "kip101_data_loss",
    "kip101_data_loss_asking",
    "kip101_data_loss_newer_records",
    "kip101_data_loss_leader_silent",
    "kip101_divergence",
    "kip101_divergence_asking",
    "kip101_divergence_answer_without_epoch",
    "kip101_divergence_power_loss",
    "kip101_divergence_other_batches",
];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scenarios/replica")
}

/// The stories by name, in order.
fn stories() -> Vec<(String, String)> {
    let files = std::fs::read_dir(directory()).unwrap();
    let mut stories: Vec<_> = files
        .map(|file| {
            let path = file.unwrap().path();
            (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(path).unwrap())
        })
        .collect();
    stories.sort();
    stories
}

/// How a story is played otherwise than it is told. Fetches that have nothing to ask are left out then.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Play {
    /// As it is told.
    Told,
    /// The brokers speak a version without leader epochs, whatever the story says.
    WithoutEpochs,
    /// With faults planted in all brokers.
    #[cfg(feature = "planted-faults")]
    Planted(Faults),
}

/// The story of this name.
pub(super) fn story(name: &str) -> String {
    std::fs::read_to_string(directory().join(format!("{name}.txt"))).unwrap()
}

/// Plays a story; returns its text with what came of it, and the world in the end.
pub(super) fn play(story: &str, how: Play) -> (String, World) {
    let mut player = Player { world: World::new(NEW, &[]), how };
    let mut text = String::new();
    for line in story.lines() {
        let command = line.strip_prefix("> ");
        if command.is_none() && !line.is_empty() && !line.starts_with('#') {
            continue;
        }
        writeln!(text, "{line}").unwrap();
        if let Some(command) = command {
            player.obey(command);
            for line in player.world.take_lines() {
                writeln!(text, "{line}").unwrap();
            }
        }
    }
    (text, player.world)
}

struct Player {
    world: World,
    how: Play,
}

impl Player {
    fn begin(&mut self, ids: &[i32], protocol: MetadataVersion) {
        self.world = match self.how {
            Play::Told => World::new(protocol, ids),
            Play::WithoutEpochs => World::new(WITHOUT_EPOCHS, ids),
            #[cfg(feature = "planted-faults")]
            Play::Planted(faults) => World::with_faults(protocol, ids, faults),
        };
    }

    fn fetch(&mut self, id: i32, lost: bool) {
        let asked = self.world.exchange(id, lost);
        assert!(asked || self.how != Play::Told, "{id} has nothing to ask");
    }

    fn obey(&mut self, command: &str) {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["brokers", ids @ .., "speak", protocol] => {
                self.begin(&numbers(ids), MetadataVersion::parse(protocol).unwrap());
            }
            ["brokers", ids @ ..] => self.begin(&numbers(ids), NEW),
            ["fetch", id] => self.fetch(number(id), false),
            ["fetch", id, "lost"] => self.fetch(number(id), true),
            _ => obey_in(&mut self.world, command, &words),
        }
    }
}

fn obey_in(world: &mut World, command: &str, words: &[&str]) {
    match words {
        ["elect", id, "isr", isr @ ..] => world.elect(number(id), Some(numbers(isr)), &[]),
        ["elect", id, "unaware", others @ ..] => world.elect(number(id), None, &numbers(others)),
        ["elect", id] => world.elect(number(id), None, &[]),
        ["inform", id] => world.inform(number(id)),
        ["crash", id] => world.crash(number(id), None),
        ["crash", id, "checkpoint", offset] => world.crash(number(id), Some(offset.parse().unwrap())),
        ["lose", id, "from", offset] => world.lose(number(id), offset.parse().unwrap()),
        ["start", id] => world.start(number(id)),
        ["append", id, records @ ..] => world.append(number(id), &batches(records)),
        ["delete", "before", offset, "on", id] => world.delete_records(number(id), offset.parse().unwrap()),
        ["epochs", "of", id, "lost"] => world.log_mut(number(id)).epochs = EpochHistory::new(),
        ["log", id, "ends", end, "epochs", epochs @ ..] => {
            *world.log_mut(number(id)) = made(end.parse().unwrap(), epochs);
        }
        ["epoch", epoch] => world.set_epoch(number(epoch)),
        ["settle"] => {
            world.settle();
            world.lines.retain(|line| !line.ends_with("fetch as before") && !line.ends_with("nothing new"));
        }
        ["wait", ms, "ms"] => world.wait(ms.parse().unwrap()),
        ["latest", "offset", "of", id] => {
            let latest = world.latest_for_consumers(number(id));
            world
                .lines
                .push(latest.map_or_else(|error| error.name().to_owned(), |offset| offset.to_string()));
        }
        ["logs"] => {
            let logs: Vec<_> = world.ids().iter().map(|id| format!("{id}: {}", world.log(*id))).collect();
            world.lines.extend(logs);
        }
        ["judge"] => {
            let lines = world.judge();
            world.lines.extend(lines);
        }
        _ => panic!("{command}: no such command"),
    }
}

fn number(word: &str) -> i32 {
    word.parse().unwrap()
}

fn numbers(words: &[&str]) -> Vec<i32> {
    words.iter().map(|word| number(word)).collect()
}

/// `A B` are two batches, `[A B]` is one.
fn batches(words: &[&str]) -> Vec<Vec<String>> {
    let mut batches: Vec<Vec<String>> = Vec::new();
    let mut open = false;
    for word in words {
        let record = word.trim_matches(['[', ']']).to_owned();
        match batches.last_mut() {
            Some(last) if open => last.push(record),
            _ => batches.push(vec![record]),
        }
        open = (open || word.starts_with('[')) && !word.ends_with(']');
    }
    batches
}

/// A log of one record for each offset, in epochs such as `1:0 2:10`.
fn made(end: i64, epochs: &[&str]) -> MemoryLog {
    let parse = |word: &&str| {
        let (epoch, start) = word.split_once(':').unwrap();
        (number(epoch), start.parse().unwrap())
    };
    MemoryLog::with_epochs(&epochs.iter().map(parse).collect::<Vec<_>>(), end)
}

#[test]
fn each_story_ends_as_it_is_told() {
    let update = std::env::var_os("UPDATE_SCENARIOS").is_some();
    let stories = stories();
    assert!(stories.len() > 20, "{} stories", stories.len());
    for (name, told) in stories {
        let (played, _) = play(&told, Play::Told);
        if update {
            std::fs::write(directory().join(&name), played).unwrap();
        } else {
            assert_eq!(played, told, "{name}; UPDATE_SCENARIOS=1 writes it anew");
        }
    }
}

#[test]
fn truncation_by_the_high_watermark_fails_where_epochs_are_needed() {
    for wanted in DECIDED_BY_EPOCHS {
        let story = story(wanted);
        let (_, by_epochs) = play(&story, Play::Told);
        assert!(by_epochs.is_sound(), "{wanted}: {:?}", by_epochs.judge());
        let (text, by_high_watermark) = play(&story, Play::WithoutEpochs);
        assert!(!by_high_watermark.is_sound(), "{wanted} would not tell the difference:\n{text}");
    }
}
