//! Static members (KIP-345, KIP-814): their replacement, who is fenced by it, and how they are removed.

use anyhow::Result;
use wire::Str;
use wire::messages::offset_commit_request::OffsetCommitRequestTopic;
use wire::messages::{HeartbeatRequest, OffsetCommitRequest, SyncGroupRequest};

use super::groups::{Trial, offset, pick};
use crate::lab::Lab;

pub fn run(lab: &mut Lab) -> Result<()> {
    for version in 5..=9 {
        let mut trial = Trial::new(lab, "static", version);
        trial
            .join("an unknown id of an instance", "nobody", |it| it.group_instance_id = Some("one".into()))?;
        let first = trial.join("an instance joins", "", |it| it.group_instance_id = Some("one".into()))?;
        trial.learn("first", first)?;
        trial.sync("an instance leads", "first", 1, &["first"])?;
        speak(&mut trial)?;
        trial.join("another instance by the same id", "first", |it| {
            it.group_instance_id = Some("two".into());
        })?;
        let second =
            trial.join("an instance is replaced", "", |it| it.group_instance_id = Some("one".into()))?;
        trial.learn("second", second)?;
        trial.look("after a replacement")?;
        speak(&mut trial)?;
        trial.join("who was replaced joins", "first", |it| it.group_instance_id = Some("one".into()))?;
        trial.join("who was replaced joins without", "first", |_| ())?;
        trial.leave(
            "instances go",
            &[("first", Some("one")), ("", Some("two")), ("second", Some("two")), ("first", None)],
        )?;
        trial.leave("an instance is removed", &[("", Some("one"))])?;
        trial.look("without instances")?;
    }
    Ok(())
}

/// Heartbeat, commit and sync, by each id with each instance.
fn speak(trial: &mut Trial<'_>) -> Result<()> {
    for (member, instance) in [
        ("first", "one"),
        ("second", "one"),
        ("first", "two"),
        ("nobody", "one"),
        ("", "one"),
        ("second", ""),
    ] {
        for generation in [1, 2, -1] {
            one(trial, member, instance, generation)?;
        }
    }
    Ok(())
}

fn one(trial: &mut Trial<'_>, member: &str, instance: &str, generation: i32) -> Result<()> {
    let group = Str::from(trial.group.as_str());
    let case = format!("{member:?} of instance {instance:?} in {generation}");
    let version = trial.version;
    let ids = [&trial.lab.kafka, &trial.lab.blumfeld].map(|side| (side.data(), trial.id(side, member)));
    trial.lab.once(&case, (version - 2).min(4), |side| HeartbeatRequest {
        group_id: group.clone(),
        generation_id: generation,
        member_id: pick(&ids, side),
        group_instance_id: Some(Str::from(instance)),
    })?;
    trial.lab.once(&case, (version + 2).min(9), |side| OffsetCommitRequest {
        group_id: group.clone(),
        generation_id_or_member_epoch: generation,
        member_id: pick(&ids, side),
        group_instance_id: Some(Str::from(instance)),
        topics: vec![OffsetCommitRequestTopic { name: "life".into(), partitions: vec![offset(0, 3, "")] }],
        ..OffsetCommitRequest::default()
    })?;
    let version = (version - 2).min(5);
    trial.lab.once(&case, version, |side| SyncGroupRequest {
        group_id: group.clone(),
        generation_id: generation,
        member_id: pick(&ids, side),
        group_instance_id: Some(Str::from(instance)),
        protocol_type: (version >= 5).then(|| "consumer".into()),
        protocol_name: (version >= 5).then(|| "range".into()),
        assignments: Vec::new(),
    })?;
    Ok(())
}
