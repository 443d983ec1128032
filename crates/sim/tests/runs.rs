//! Runs of the simulation: they repeat themselves to the last event, and nothing is found where nothing goes wrong.

use std::process::Command;

use sim::{Plan, Protocol, Report, run};

const PROTOCOLS: [Protocol; 2] = [Protocol::V2_6, Protocol::V3_9];

fn calm(seed: u64, protocol: Protocol) -> Report {
    run(&Plan { ms: 8_000, with_faults: false, ..Plan::new(seed, protocol) })
}

#[test]
fn a_cluster_in_a_calm_world_does_its_work_and_logs_no_warning() {
    for protocol in PROTOCOLS {
        let report = calm(1, protocol);
        assert_eq!(report.findings, Vec::<String>::new(), "{:#?}", report.last_lines);
        for what in
            ["batches confirmed by all", "records read", "ends told", "topics created", "topics deleted"]
        {
            assert!(report.done.contains_key(what), "{what}: {:?}", report.done);
        }
    }
}

#[test]
fn the_same_plan_gives_the_same_trace_here_and_in_another_process() {
    for protocol in PROTOCOLS {
        let plan = Plan { ms: 6_000, ..Plan::new(3, protocol) };
        let (first, second) = (run(&plan), run(&plan));
        assert_eq!(first.digest, second.digest);
        let mut elsewhere = Command::new(env!("CARGO_BIN_EXE_sim"));
        elsewhere.args(["--seed", "3", "--ms", "6000", "--ibp", protocol.name()]);
        let told = String::from_utf8(elsewhere.output().unwrap().stdout).unwrap();
        let (digest, lines) = first.digest;
        assert!(told.starts_with(&format!("seed 3 ibp {protocol}: {digest:016x}, {lines} lines")), "{told}");
    }
}

#[test]
fn another_seed_gives_another_trace() {
    assert_ne!(calm(1, Protocol::V3_9).digest, calm(2, Protocol::V3_9).digest);
}
