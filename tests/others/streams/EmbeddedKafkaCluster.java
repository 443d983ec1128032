package org.apache.kafka.streams.integration.utils;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.server.util.MockTime;
import org.apache.kafka.test.TestUtils;

import blumfeld.streams.Servers;

/**
 * Stands in for the class of this name among the tests of Kafka Streams: its brokers are processes of their own, of
 * the kind that {@link Servers} is told to start.
 *
 * <p>Only what those tests call is here. The mock clock is theirs alone: it gives records their timestamps, while brokers go
 * by the real time.
 */
public class EmbeddedKafkaCluster {
    private static final long LIMIT_MS = 60_000;

    public final MockTime time;

    private final int size;
    private final Properties properties;
    private final List<Properties> propertiesOfEach;
    private Servers servers;
    private Admin admin;

    public EmbeddedKafkaCluster(final int size) {
        this(size, new Properties());
    }

    public EmbeddedKafkaCluster(final int size, final Properties properties) {
        this(size, properties, System.currentTimeMillis());
    }

    public EmbeddedKafkaCluster(final int size, final Properties properties, final long startMs) {
        this(size, properties, Collections.emptyList(), startMs);
    }

    public EmbeddedKafkaCluster(final int size, final Properties properties, final List<Properties> ofEach) {
        this(size, properties, ofEach, System.currentTimeMillis());
    }

    public EmbeddedKafkaCluster(
        final int size, final Properties properties, final List<Properties> ofEach, final long startMs
    ) {
        this(size, properties, ofEach, startMs, System.nanoTime());
    }

    public EmbeddedKafkaCluster(
        final int size,
        final Properties properties,
        final List<Properties> ofEach,
        final long startMs,
        final long startNs
    ) {
        this.size = size;
        this.properties = properties;
        this.propertiesOfEach = ofEach;
        this.time = new MockTime(startMs, startNs);
    }

    public void start() throws IOException {
        final List<Properties> brokers = new ArrayList<>();
        for (int id = 0; id < size; id++) {
            final Properties broker = new Properties();
            broker.putAll(properties);
            if (id < propertiesOfEach.size()) {
                broker.putAll(propertiesOfEach.get(id));
            }
            brokers.add(broker);
        }
        servers = Servers.start(brokers);
        admin = Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers()));
        try {
            TestUtils.waitForCondition(this::allAreKnown, LIMIT_MS, "the cluster is not whole");
        } catch (final InterruptedException e) {
            throw new IOException(e);
        }
    }

    public void stop() {
        if (admin != null) {
            admin.close();
        }
        if (servers != null) {
            servers.close();
        }
    }

    public String bootstrapServers() {
        return servers.bootstrap();
    }

    public void createTopics(final String... names) throws InterruptedException {
        for (final String name : names) {
            createTopic(name);
        }
    }

    public void createTopic(final String name) throws InterruptedException {
        createTopic(name, 1, 1);
    }

    public void createTopic(final String name, final int partitions, final int replicas) throws InterruptedException {
        createTopic(name, partitions, replicas, Collections.emptyMap());
    }

    public void createTopic(
        final String name, final int partitions, final int replicas, final Map<String, String> configs
    ) throws InterruptedException {
        final NewTopic topic = new NewTopic(name, partitions, (short) replicas).configs(configs);
        get(() -> admin.createTopics(List.of(topic)).all().get());
        TestUtils.waitForCondition(() -> isLed(name, partitions), LIMIT_MS, "nobody leads " + name);
    }

    public void deleteTopic(final String name) throws InterruptedException {
        deleteTopics(name);
    }

    public void deleteTopicAndWait(final String name) throws InterruptedException {
        deleteTopicsAndWait(name);
    }

    public void deleteTopics(final String... names) throws InterruptedException {
        for (final String name : names) {
            try {
                get(() -> admin.deleteTopics(List.of(name)).all().get());
            } catch (final UnknownTopicOrPartitionException e) {
                // Nothing to delete, as wanted.
            }
        }
    }

    public void deleteTopicsAndWait(final String... names) throws InterruptedException {
        deleteTopicsAndWait(LIMIT_MS, names);
    }

    /** With a limit of 0 nobody waits. */
    public void deleteTopicsAndWait(final long limitMs, final String... names) throws InterruptedException {
        deleteTopics(names);
        if (limitMs > 0) {
            TestUtils.waitForCondition(() -> areGone(names), limitMs, "still there: " + Arrays.toString(names));
        }
    }

    public void deleteAllTopicsAndWait(final long limitMs) throws InterruptedException {
        deleteTopicsAndWait(limitMs, getAllTopicsInCluster().toArray(new String[0]));
    }

    public void waitForRemainingTopics(final long limitMs, final String... names) throws InterruptedException {
        final Set<String> wanted = new HashSet<>(Arrays.asList(names));
        TestUtils.waitForCondition(
            () -> getAllTopicsInCluster().equals(wanted), limitMs, () -> wanted + ": " + getAllTopicsInCluster());
    }

    public Properties getLogConfig(final String topic) {
        final ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        final Properties config = new Properties();
        get(() -> admin.describeConfigs(List.of(resource)).all().get()).get(resource).entries()
            .forEach(entry -> config.put(entry.name(), entry.value()));
        return config;
    }

    /** The internal topics of brokers too. */
    public Set<String> getAllTopicsInCluster() {
        return get(() -> admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get());
    }

    private boolean allAreKnown() {
        return get(() -> admin.describeCluster().nodes().get()).size() == size;
    }

    private boolean isLed(final String name, final int partitions) {
        try {
            final TopicDescription topic = get(() -> admin.describeTopics(List.of(name)).allTopicNames().get()).get(name);
            return topic.partitions().size() == partitions
                && topic.partitions().stream().allMatch(partition -> partition.leader() != null);
        } catch (final UnknownTopicOrPartitionException e) {
            return false;
        }
    }

    /** Whether nobody knows these topics, and their names are free. */
    private boolean areGone(final String... names) {
        if (!Collections.disjoint(getAllTopicsInCluster(), Arrays.asList(names))) {
            return false;
        }
        final List<NewTopic> topics =
            Arrays.stream(names).map(name -> new NewTopic(name, 1, (short) 1)).collect(Collectors.toList());
        try {
            get(() -> admin.createTopics(topics, new CreateTopicsOptions().validateOnly(true)).all().get());
            return true;
        } catch (final TopicExistsException e) {
            return false;
        }
    }

    private interface Question<T> {
        T ask() throws ExecutionException, InterruptedException;
    }

    /** The answer, or the error that the brokers answered. */
    private static <T> T get(final Question<T> question) {
        try {
            return question.ask();
        } catch (final ExecutionException e) {
            if (e.getCause() instanceof RuntimeException) {
                throw (RuntimeException) e.getCause();
            }
            throw new UncheckedIOException(new IOException(e.getCause()));
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new UncheckedIOException(new IOException(e));
        }
    }
}
