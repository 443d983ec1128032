//! The client against brokers of different ages, played by the test.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use net::client::{Client, ClientError};
use net::{ConnectionInfo, ConnectionSettings, FrameHandler, Outcome, Reply};
use wire::api::ApiKey;
use wire::error_code::ErrorCode;
use wire::header::decode_request_header;
use wire::messages::api_versions_response::ApiVersion;
use wire::messages::{
    ApiVersionsResponse, MetadataRequest, MetadataResponse, ProduceRequest, SaslHandshakeRequest,
};
use wire::{Decoder, response};

use crate::common::{Server, respond};

/// A broker that serves ApiVersions up to a version, Metadata 1 to 5, and swallows the rest.
struct Broker {
    newest_api_versions: i16,
}

impl FrameHandler for Broker {
    fn handle(&self, _: &Arc<ConnectionInfo>, frame: Bytes, reply: Reply) {
        let header = decode_request_header(&mut Decoder::new(frame)).unwrap();
        let (version, id) = (header.api_version, header.correlation_id);
        let encoded = match ApiKey::from_code(header.api_key).unwrap() {
            ApiKey::ApiVersions if version > self.newest_api_versions => {
                let error_code = ErrorCode::UnsupportedVersion.code();
                let api_keys = vec![api(18, 0, self.newest_api_versions)];
                response::encode(&ApiVersionsResponse { error_code, api_keys, ..Default::default() }, 0, id)
            }
            ApiKey::ApiVersions => {
                let api_keys = vec![api(3, 1, 5), api(18, 0, self.newest_api_versions), api(0, 0, 2)];
                response::encode(&ApiVersionsResponse { api_keys, ..Default::default() }, version, id)
            }
            ApiKey::Metadata => {
                let response = MetadataResponse { controller_id: version.into(), ..Default::default() };
                response::encode(&response, version, id)
            }
            _ => return reply.send(Outcome::NoResponse),
        };
        reply.send(respond(encoded.unwrap()));
    }
}

fn api(api_key: i16, min_version: i16, max_version: i16) -> ApiVersion {
    ApiVersion { api_key, min_version, max_version }
}

async fn connect(server: &Server) -> Client {
    Client::connect(&server.address.to_string(), "test").await.unwrap()
}

#[tokio::test]
async fn requests_go_out_in_the_highest_common_version() {
    for newest_api_versions in [0, 1, 3] {
        let server = Server::start(ConnectionSettings::default(), Arc::new(Broker { newest_api_versions }));
        let mut client = connect(&server).await;
        assert_eq!(client.versions(ApiKey::Metadata), Some(1..=5));
        let response = client.send(&MetadataRequest::default()).await.unwrap();
        assert_eq!(response.controller_id, 5);
        let response = client.send_version(&MetadataRequest::default(), 2).await.unwrap();
        assert_eq!(response.controller_id, 2);
    }
}

#[tokio::test]
async fn a_request_that_the_broker_does_not_know_is_not_sent() {
    let server = Server::start(ConnectionSettings::default(), Arc::new(Broker { newest_api_versions: 3 }));
    let mut client = connect(&server).await;
    let sent = server.counters.requests.get();
    let error = client.send(&SaslHandshakeRequest::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unsupported { theirs: None, .. }), "{error}");
    assert_eq!(server.counters.requests.get(), sent);
}

#[tokio::test]
async fn a_request_without_answer_does_not_wait_for_one() {
    let server = Server::start(ConnectionSettings::default(), Arc::new(Broker { newest_api_versions: 3 }));
    let mut client = connect(&server).await;
    let before = server.counters.requests.get();
    client.send_unanswered(&ProduceRequest::default()).await.unwrap();
    client.send(&MetadataRequest::default()).await.unwrap();
    assert_eq!(server.counters.requests.get(), before + 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_answered_in_time_spoils_the_connection() {
    let server = Server::start(ConnectionSettings::default(), Arc::new(Broker { newest_api_versions: 3 }));
    let mut client = connect(&server).await;
    client.set_timeout(Duration::from_millis(1500));
    let error = client.send(&ProduceRequest::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::Timeout(_)), "{error}");
    let error = client.send(&MetadataRequest::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::Unusable), "{error}");
}

#[tokio::test]
async fn the_end_of_the_connection_is_told_as_such() {
    let server = Server::start(ConnectionSettings::default(), Arc::new(Broker { newest_api_versions: 3 }));
    let mut client = connect(&server).await;
    client.send_bytes(&[0xff; 4]).await.unwrap();
    assert!(matches!(client.receive_frame().await, Err(ClientError::Closed)));
    let nobody = Client::connect("127.0.0.1:1", "test").await.unwrap_err();
    assert!(nobody.to_string().contains("127.0.0.1:1"), "{nobody}");
}
