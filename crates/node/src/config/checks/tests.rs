use super::super::kafka_config::KafkaConfig;
use super::super::properties::Properties;

fn read(settings: &str) -> Result<KafkaConfig, String> {
    let file = settings.replace(';', "\n");
    let properties = Properties::parse(file.as_bytes()).unwrap();
    KafkaConfig::from_properties(&properties, &[])
        .map(|(config, _)| config)
        .map_err(|error| error.to_string())
}

#[track_caller]
fn refused(settings: &str, part: &str) {
    let error = read(settings).expect_err(settings);
    assert!(error.contains(part), "{settings}: {error}");
    assert!(!error.contains('\n'), "{settings}: {error}");
}

#[track_caller]
fn accepted(settings: &str) -> KafkaConfig {
    read(settings).unwrap_or_else(|error| panic!("{settings}: {error}"))
}

#[test]
fn ids_must_fit_their_range_and_each_other() {
    refused("broker.id=1001", "from -1 to 1000");
    refused("broker.id=-2", "from -1 to 1000");
    refused("broker.id=-1;broker.id.generation.enable=false", "at least 0");
    refused("broker.id=1;node.id=2", "broker.id=1 and node.id=2");
    accepted("broker.id=1001;broker.id.generation.enable=false");
    assert_eq!(accepted("node.id=7").broker_id, 7);
}

#[test]
fn times_of_retention_and_roll_have_their_limits() {
    for settings in ["log.retention.ms=0", "log.retention.minutes=0", "log.retention.hours=0"] {
        refused(settings, "at least 1, or -1");
    }
    refused("log.roll.ms=0", "at least 1");
    refused("log.roll.jitter.ms=-1", "at least 0");
    accepted("log.retention.ms=-2");
    accepted("log.retention.ms=5;log.retention.hours=0");
}

#[test]
fn numbers_that_bound_one_another() {
    refused("replica.fetch.wait.max.ms=30001", "not be above replica.socket.timeout.ms=30000");
    refused("replica.lag.time.max.ms=499", "not be above replica.lag.time.max.ms=499");
    refused("log.cleaner.dedupe.buffer.size=2097152;log.cleaner.threads=2", "more than 1048576");
    accepted("log.cleaner.threads=0");
    refused("queued.max.request.bytes=100", "at least socket.request.max.bytes=104857600");
    accepted("queued.max.request.bytes=0");
    refused("connection.failed.authentication.delay.ms=600000", "below connections.max.idle.ms=600000");
    accepted("connections.max.idle.ms=-1");
    refused("offsets.commit.required.acks=4", "not be above offsets.topic.replication.factor=1");
    refused("offsets.commit.required.acks=-2", "at least -1");
    refused("offsets.topic.compression.codec=9", "from 0 to 4");
    refused("group.consumer.max.session.timeout.ms=1", "group.consumer.max.session.timeout.ms=1");
    refused(
        "group.consumer.heartbeat.interval.ms=50000",
        "not be above group.consumer.max.heartbeat.interval.ms",
    );
    refused("group.coordinator.rebalance.protocols=classic,consumer", "must contain classic");
    refused("group.coordinator.rebalance.protocols=", "must contain classic");
}

#[test]
fn limits_per_address_are_host_and_number() {
    refused("max.connections.per.ip=0", "max.connections.per.ip.overrides");
    refused("max.connections.per.ip.overrides=127.0.0.1", "'127.0.0.1' is not of the form host:limit");
    refused("max.connections.per.ip.overrides=a b:5", "not of the form");
    let config = accepted("max.connections.per.ip=0;max.connections.per.ip.overrides=127.0.0.1:5, ::1:6");
    let shown: Vec<_> = config.max_connections_per_ip_overrides.into_iter().collect();
    assert_eq!(shown, [("127.0.0.1".to_owned(), 5), ("::1".to_owned(), 6)]);
}

#[test]
fn log_dirs_win_over_log_dir() {
    let dirs = |settings| {
        accepted(settings).log_dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(dirs("log.dir=x;log.dirs=a, b,,"), "a b");
    assert_eq!(dirs("log.dir=x"), "x");
    refused("log.dirs=", "at least one log directory");
    refused("log.dirs=a,b,a", "a is listed twice");
}

#[test]
fn listeners_have_names_ports_and_roles() {
    refused("listeners=", "listeners is empty");
    refused("listeners=PLAINTEXT://:1,PLAINTEXT://:2", "used twice");
    refused("listeners=A://:1", "listener A has no entry");
    refused("listeners=A://:1;listener.security.protocol.map=A:PLAINTEXT", "asks for the listener PLAINTEXT");
    refused(
        "listeners=A://:1;listener.security.protocol.map=A:PLAINTEXT;inter.broker.listener.name=A;\
         security.inter.broker.protocol=PLAINTEXT",
        "only one of",
    );
    refused("inter.broker.listener.name=B", "has no entry in listener.security.protocol.map");
    refused("listener.security.protocol.map=PLAINTEXT:FOO", "'FOO' is not a security protocol");
    refused("control.plane.listener.name=X", "not advertised");
    refused("control.plane.listener.name=PLAINTEXT", "must differ");
    refused("early.start.listeners=X", "not in listeners");
    let config =
        accepted("listeners=a://h:1;listener.security.protocol.map=a:plaintext;inter.broker.listener.name=a");
    assert_eq!(config.listeners.inter_broker, "A");
    assert_eq!(config.listeners.advertised("A").map(|e| e.port), Some(1));
}

/// PlaytikaOSS/testcontainers-spring-boot#974, wurstmeister/kafka-docker#715.
#[test]
fn what_is_advertised_must_be_bound_and_reachable() {
    refused("listeners=PLAINTEXT://0.0.0.0:9092", "clients cannot reach 0.0.0.0");
    refused("advertised.listeners=PLAINTEXT://0.0.0.0:9092", "clients cannot reach 0.0.0.0");
    refused("advertised.listeners=", "advertised.listeners is empty");
    refused("advertised.listeners=SSL://h:1", "SSL, which is not in listeners");
    let config = accepted("listeners=PLAINTEXT://0.0.0.0:9092;advertised.listeners=PLAINTEXT://me:9");
    assert_eq!(config.listeners.advertised[0].to_string(), "PLAINTEXT://me:9");
    assert_eq!(config.listeners.bound[0].to_string(), "PLAINTEXT://0.0.0.0:9092");
}

#[test]
fn what_blumfeld_does_not_have_is_refused_by_name() {
    for (settings, part) in [
        ("zookeeper.connect=h:2181;zookeeper.set.acl=true", "zookeeper.set.acl=true"),
        ("process.roles=broker", "process.roles=broker"),
        ("zookeeper.metadata.migration.enable=true", "zookeeper.metadata.migration.enable=true"),
        ("remote.log.storage.system.enable=true", "remote.log.storage.system.enable=true"),
        ("config.providers=env", "config.providers=env"),
        ("controller.listener.names=C", "controller.listener.names=C"),
        ("authorizer.class.name=kafka.security.authorizer.AclAuthorizer", "authorizer.class.name="),
        ("create.topic.policy.class.name=x.Y", "create.topic.policy.class.name=x.Y"),
        ("principal.builder.class=x.Y", "DefaultKafkaPrincipalBuilder"),
        ("replica.selector.class=x.Y", "RackAwareReplicaSelector"),
        ("metric.reporters=x.Y", "JmxReporter"),
        ("listeners=SSL://:1,PLAINTEXT://:2", "SSL://:1 with the security protocol SSL"),
        ("inter.broker.protocol.version=4.0-IV0", "not be above 3.9-IV0"),
    ] {
        refused(settings, part);
    }
    accepted("zookeeper.connect=;metric.reporters=org.apache.kafka.common.metrics.JmxReporter");
}
