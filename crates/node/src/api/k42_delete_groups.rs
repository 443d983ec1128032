//! DeleteGroups (key 42): groups without members go, with all that they have committed (KIP-229).

use std::collections::BTreeSet;
use std::sync::Arc;

use kernel::group::gate::Api;
use kernel::group::{self, Event};
use wire::error_code::ErrorCode;
use wire::messages::delete_groups_response::DeletableGroupResult;
use wire::messages::{DeleteGroupsRequest, DeleteGroupsResponse};

use super::Answer;
use crate::broker::Broker;
use crate::drive::gather::Gather;
use crate::drive::groups;

/// Handles a DeleteGroups request; a group that is named twice is deleted once.
pub(crate) fn handle(broker: &Arc<Broker>, mut answer: Answer, request: DeleteGroupsRequest) {
    answer.unpin();
    let named: BTreeSet<_> = request.groups_names.into_iter().collect();
    let gather = Gather::new(named.len(), move |results: Vec<DeletableGroupResult>| {
        answer.send(&DeleteGroupsResponse { results, ..DeleteGroupsResponse::default() });
    });
    for (place, group_id) in named.into_iter().enumerate() {
        let (gather, told) = (gather.clone(), group_id.clone());
        groups::ask(broker, Api::Delete, &group_id, Event::Delete, move |outcome| {
            let error = match outcome {
                Ok(group::Answer::Delete(error)) | Err(error) => error,
                Ok(_) => ErrorCode::UnknownServerError,
            };
            gather.put(place, DeletableGroupResult { group_id: told, error_code: error.code() });
        });
    }
}
