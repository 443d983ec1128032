use wire::types::{BrokerId, LeaderEpoch};

use super::*;

#[derive(Default)]
struct Bench {
    sender: AlterPartition,
    now_ms: i64,
}

impl Bench {
    fn step(&mut self, event: Event) -> Vec<Command> {
        let mut out = Vec::new();
        self.sender.step(Now { mono_ms: self.now_ms, wall_ms: 0 }, event, &mut out);
        self.sender.check();
        out
    }

    fn submit(&mut self, partition: i32, partition_epoch: i32) -> Vec<Command> {
        self.step(Event::Submit { partition: at(partition), item: item(partition_epoch) })
    }

    fn wait(&mut self, ms: i64) -> Vec<Command> {
        self.now_ms += ms;
        self.step(Event::Tick)
    }

    fn answer(&mut self, id: u64, answers: &[(i32, IsrAnswer)]) -> Vec<Command> {
        let answers = answers.iter().map(|(partition, answer)| (at(*partition), answer.clone())).collect();
        self.step(Event::Answered { id, answers })
    }
}

fn at(partition: i32) -> TopicPartition {
    TopicPartition::new("t", partition)
}

fn item(partition_epoch: i32) -> Item {
    let (leader_epoch, isr) = (LeaderEpoch(1), vec![BrokerId(1)]);
    let change = IsrChange { leader_epoch, partition_epoch, isr, joining: None };
    Item { topic_id: TopicId([1; 16]), change }
}

fn send(id: u64, items: &[(i32, i32)]) -> Command {
    Command::Send {
        id,
        items: items.iter().map(|(partition, epoch)| (at(*partition), item(*epoch))).collect(),
    }
}

fn report(partition: i32, partition_epoch: i32, answer: IsrAnswer) -> Command {
    Command::Report { partition: at(partition), change: item(partition_epoch).change, answer }
}

#[test]
fn the_first_change_goes_at_once_and_those_that_come_meanwhile_go_together() {
    let mut bench = Bench::default();
    assert_eq!(bench.submit(0, 5), [send(1, &[(0, 5)])]);
    assert_eq!(bench.submit(1, 6), []);
    assert_eq!(bench.submit(2, 7), []);
    let answered = bench.answer(1, &[(0, IsrAnswer::NotAttempted)]);
    assert_eq!(answered, [report(0, 5, IsrAnswer::NotAttempted), send(2, &[(1, 6), (2, 7)])]);
    assert_eq!(bench.sender.len(), 2);
}

#[test]
fn a_request_that_fails_is_sent_again_after_a_pause_with_what_has_gathered() {
    let mut bench = Bench::default();
    bench.submit(0, 5);
    bench.submit(1, 6);
    assert_eq!(bench.step(Event::Failed { id: 1 }), []);
    assert_eq!(bench.sender.deadline(), Some(RETRY_PAUSE_MS));
    assert_eq!(bench.submit(2, 7), [], "the pause is for all");
    assert_eq!(bench.wait(RETRY_PAUSE_MS - 1), []);
    assert_eq!(bench.wait(1), [send(2, &[(0, 5), (1, 6), (2, 7)])]);
    assert_eq!(bench.sender.deadline(), None);
}

#[test]
fn a_change_that_its_leader_asks_for_anew_replaces_the_one_that_waits() {
    let mut bench = Bench::default();
    bench.submit(0, 5);
    bench.submit(1, 6);
    bench.submit(1, 7);
    bench.submit(0, 8);
    bench.step(Event::Failed { id: 1 });
    assert_eq!(
        bench.wait(RETRY_PAUSE_MS),
        [send(2, &[(0, 8), (1, 7)])],
        "what failed is not put above it either"
    );
}

#[test]
fn a_partition_that_the_answer_leaves_out_is_sent_again() {
    let mut bench = Bench::default();
    bench.submit(0, 5);
    bench.step(Event::Failed { id: 1 });
    bench.submit(1, 6);
    bench.wait(RETRY_PAUSE_MS);
    assert_eq!(bench.answer(2, &[(1, IsrAnswer::Superseded)]), [report(1, 6, IsrAnswer::Superseded)]);
    assert_eq!(bench.wait(RETRY_PAUSE_MS), [send(3, &[(0, 5)])]);
}

#[test]
fn the_answer_to_another_request_and_partitions_that_were_not_asked_for_are_ignored() {
    let mut bench = Bench::default();
    bench.submit(0, 5);
    assert_eq!(bench.answer(7, &[(0, IsrAnswer::NotAttempted)]), []);
    assert_eq!(bench.step(Event::Failed { id: 7 }), []);
    let answered = bench.answer(1, &[(0, IsrAnswer::NotAttempted), (9, IsrAnswer::NotAttempted)]);
    assert_eq!(answered, [report(0, 5, IsrAnswer::NotAttempted)]);
    assert_eq!(bench.answer(1, &[(0, IsrAnswer::NotAttempted)]), []);
    assert!(bench.sender.is_empty());
}

#[test]
fn a_partition_that_fails_alone_is_not_asked_for_again_without_a_pause() {
    let mut bench = Bench::default();
    bench.submit(0, 5);
    assert_eq!(bench.answer(1, &[(0, IsrAnswer::Failed)]), [report(0, 5, IsrAnswer::Failed)]);
    assert_eq!(bench.submit(0, 5), []);
    assert_eq!(bench.wait(RETRY_PAUSE_MS), [send(2, &[(0, 5)])]);
}
