//! The same commands to three brokers of each kind: ZooKeeper holds the same tree afterwards, and Kafka's own tools say
//! the same, step by step. Times, ids, ports and what belongs to a session are left out, nothing else.

mod script;
mod seen;

use anyhow::{Result, anyhow, ensure};
use interop::broker::Kind;

use seen::Seen;

#[test]
fn tools_and_tree_are_the_same_after_each_command() -> Result<()> {
    let both = std::thread::scope(|scope| {
        let runs = [Kind::Kafka, Kind::Blumfeld].map(|kind| scope.spawn(move || script::run(kind)));
        runs.map(|run| run.join().map_err(|_| anyhow!("a run has panicked"))?)
            .into_iter()
            .collect::<Result<Vec<Vec<Seen>>>>()
    })?;
    let [kafka, ours] = both.as_slice() else { return Err(anyhow!("two runs")) };
    ensure!(kafka.len() == ours.len(), "{} steps and {}", kafka.len(), ours.len());
    let differences: Vec<String> =
        kafka.iter().zip(ours).filter_map(|(kafka, ours)| kafka.differs(ours)).collect();
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    println!("{} steps", kafka.len());
    Ok(())
}
