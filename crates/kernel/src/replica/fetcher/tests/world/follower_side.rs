//! A broker that follows: its requests go to the leader one by one, and its log is worked on as its fetcher says.

use std::collections::VecDeque;

use super::*;

impl World {
    /// Lets the request of follower `id` arrive and, unless it gets `lost`, its answer come back. Returns whether
    /// there was a request.
    pub(in super::super) fn exchange(&mut self, id: i32, lost: bool) -> bool {
        let Role::Follower { leader, .. } = self.brokers[&id].role else { return false };
        let Some(request) = self.broker(id).request.take() else { return false };
        let (asked, number) = describe(&request);
        self.tell(format!("{id} -> {leader}: {asked}"));
        let at = self.lines.len();
        let (answer, batches) = self.answer_of(leader, id, &request);
        let described = match &answer {
            None => format!("{leader} is down"),
            Some(answer) => format!("{leader} -> {id}: {}", describe_answer(answer, &batches)),
        };
        // What the leader answers was decided before what the fetch has told it takes effect.
        self.lines.insert(if batches.is_empty() { self.lines.len() } else { at }, described);
        match answer {
            Some(_) if lost => {
                self.tell("the answer is lost".to_owned());
                self.follow(id, Event::RequestFailed(number), &[]);
            }
            Some(answer) => self.follow(id, answer, &batches),
            None => self.follow(id, Event::RequestFailed(number), &[]),
        }
        true
    }

    fn answer_of(&mut self, leader: i32, id: i32, request: &Command) -> (Option<Event>, Vec<MemoryBatch>) {
        match request {
            Command::SendFetch(request) => match self.answer_fetch(leader, id, request) {
                Some((reply, batches)) => (Some(Event::FetchReply(request.id, reply)), batches),
                None => (None, Vec::new()),
            },
            Command::SendOffsetsForLeaderEpoch(number, questions) => {
                let replies = self.answer_epochs(leader, questions);
                (replies.map(|replies| Event::EpochReply(*number, replies)), Vec::new())
            }
            Command::SendListOffsets(number, target, asked) => {
                let replies = self.answer_offsets(leader, *target, asked);
                (replies.map(|replies| Event::ListOffsetsReply(*number, replies)), Vec::new())
            }
            other => panic!("{other:?} is no request"),
        }
    }

    /// Lets an event happen to the fetcher of a broker, and carries out what it wants.
    pub(super) fn follow(&mut self, id: i32, event: Event, batches: &[MemoryBatch]) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let now = self.now();
            let mut out = Vec::new();
            let broker = self.broker(id);
            broker.fetcher.step(now, &broker.logs, event, &mut out);
            broker.fetcher.check();
            for command in out {
                events.extend(self.obey(id, command, batches));
            }
            self.log(id).check();
        }
    }

    fn obey(&mut self, id: i32, command: Command, batches: &[MemoryBatch]) -> Option<Event> {
        match command {
            Command::SendFetch(_) | Command::SendOffsetsForLeaderEpoch(..) | Command::SendListOffsets(..) => {
                self.broker(id).request = Some(command);
                None
            }
            Command::TruncateTo(work, offset, cause) => {
                let before = self.log(id).clone();
                self.broker(id).log().truncate_to(offset.0);
                self.tell_cut(id, &before, format!("truncates to {offset}, as {cause}"));
                Some(self.truncated(id, work))
            }
            Command::TruncateFullyAndStartAt(work, offset, cause) => {
                let before = self.log(id).clone();
                *self.broker(id).log() = MemoryLog::empty_at(offset.0);
                self.tell_cut(id, &before, format!("starts anew at {offset}, as {cause}"));
                Some(self.truncated(id, work))
            }
            Command::Append(work) => Some(self.append_fetched(id, work, batches)),
            Command::SetHighWatermark(_, _, offset) => {
                self.broker(id).log().set_high_watermark(offset.0);
                self.tell(format!("{id}: high watermark {offset}"));
                None
            }
            Command::SetLogStart(_, _, offset) => {
                self.broker(id).log().set_log_start(offset.0);
                self.tell(format!("{id}: log start {offset}"));
                None
            }
            Command::MarkFailed(_, failure) => {
                self.broker(id).failed = true;
                self.tell(format!("{id}: gives up, {failure:?}"));
                None
            }
            Command::Note(note) => {
                self.tell_note(id, &note);
                None
            }
        }
    }

    fn append_fetched(&mut self, id: i32, work: LogWork, batches: &[MemoryBatch]) -> Event {
        let LogWork { id: work, partition, leader_epoch } = work;
        let log = self.broker(id).log();
        match log.append_as_follower(batches.to_vec(), leader_epoch.0) {
            Ok(()) => {
                let log_end = Offset(log.log_end);
                let last_epoch = log.batches.last().map(|batch| LeaderEpoch(batch.epoch));
                self.tell(format!("{id}: appends {}", list(batches)));
                Event::Appended { work, partition, log_end, last_epoch }
            }
            Err(failure) => Event::AppendFailed { work, partition, failure },
        }
    }

    fn truncated(&mut self, id: i32, work: LogWork) -> Event {
        let log_end = Offset(self.log(id).log_end);
        let latest_epoch = self.broker(id).logs.latest_epoch(&work.partition);
        Event::Truncated { work: work.id, partition: work.partition, log_end, latest_epoch }
    }

    fn tell_cut(&mut self, id: i32, before: &MemoryLog, mut text: String) {
        let after = self.log(id);
        let cut: Vec<_> =
            before.batches.iter().filter(|batch| !after.batches.contains(batch)).cloned().collect();
        if after.high_watermark < before.high_watermark {
            text += &format!("; its high watermark goes back from {}", before.high_watermark);
        }
        if !cut.is_empty() {
            text += &format!("; drops {}", list(&cut));
        }
        let confirmed =
            cut.into_iter().filter(|batch| self.confirmed.contains_key(&(batch.base, batch.epoch)));
        let confirmed: Vec<_> = confirmed.collect();
        // One that is not in sync may follow a leader that was overtaken without knowing; its log does not count.
        if self.state.isr.contains(&id) {
            self.confirmed_but_cut.extend(confirmed);
        }
        self.tell(format!("{id}: {text}"));
    }

    fn tell_note(&mut self, id: i32, note: &Note) {
        let text = match note {
            Note::Refused(_, error) => {
                format!("tries again in {BACKOFF_MS} ms, as the leader answers {}", error.name())
            }
            Note::OutOfRange(_, offset) => format!("{offset} is out of the leader's range"),
            Note::Outdated(_) => "the answer is too late".to_owned(),
            Note::SessionLost(error) => {
                format!("begins a new session, as the leader answers {}", error.name())
            }
            other => format!("{other:?}"),
        };
        self.tell(format!("{id}: {text}"));
    }
}

fn describe(request: &Command) -> (String, RequestId) {
    match request {
        Command::SendFetch(request) => {
            let asked = request.partitions.first().map(|(_, asked)| asked.fetch);
            let text = match asked {
                None if request.forgotten.is_empty() => "fetch as before".to_owned(),
                None => "fetch nothing any more".to_owned(),
                Some(fetch) => {
                    let last = match fetch.last_fetched_epoch {
                        LeaderEpoch::UNKNOWN => String::new(),
                        epoch => format!(" after epoch {epoch}"),
                    };
                    let (from, epoch) = (fetch.fetch_offset, fetch.current_leader_epoch);
                    format!("fetch from {from}{last}, in epoch {epoch}")
                }
            };
            (text, request.id)
        }
        Command::SendOffsetsForLeaderEpoch(number, questions) => {
            let asked =
                questions.iter().map(|it| format!("{}, in epoch {}", it.epoch, it.current_leader_epoch));
            (format!("end of epoch {}", asked.collect::<Vec<_>>().join(" ")), *number)
        }
        Command::SendListOffsets(number, target, _) => (format!("{target:?} offset").to_lowercase(), *number),
        other => panic!("{other:?} is no request"),
    }
}

fn describe_answer(answer: &Event, batches: &[MemoryBatch]) -> String {
    match answer {
        Event::FetchReply(_, reply) if reply.error.is_error() => reply.error.name().to_owned(),
        Event::FetchReply(_, reply) => match reply.partitions.first() {
            None => "nothing new".to_owned(),
            Some(it) if it.error.is_error() => it.error.name().to_owned(),
            Some(it) => match it.diverging {
                Some(end) => format!("diverging, epoch {} ends at {}", end.epoch, end.end),
                None => {
                    let records = if batches.is_empty() { "no records".to_owned() } else { list(batches) };
                    let start = if it.log_start.0 > 0 {
                        format!(", log start {}", it.log_start)
                    } else {
                        String::new()
                    };
                    format!("{records}, high watermark {}{start}", it.high_watermark)
                }
            },
        },
        Event::EpochReply(_, replies) => {
            let told = replies.iter().map(|it| match it.error {
                ErrorCode::None if it.end.end == Offset::UNKNOWN => "unknown".to_owned(),
                ErrorCode::None if it.end.epoch == LeaderEpoch::UNKNOWN => {
                    format!("it ends at {}", it.end.end)
                }
                ErrorCode::None => format!("epoch {} ends at {}", it.end.epoch, it.end.end),
                error => error.name().to_owned(),
            });
            told.collect::<Vec<_>>().join(" ")
        }
        Event::ListOffsetsReply(_, replies) => {
            let told = replies.iter().map(|it| match it.error {
                ErrorCode::None => it.offset.to_string(),
                error => error.name().to_owned(),
            });
            told.collect::<Vec<_>>().join(" ")
        }
        other => panic!("{other:?} is no answer"),
    }
}
