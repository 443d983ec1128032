package blumfeld.streams;

import java.io.File;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * Brokers of one cluster, each a process with a folder of its own.
 *
 * <p>The system property {@code blumfeld.binary} names the broker; without it a real Kafka is started from the jars that
 * {@code kafka.jars} names, as ZooKeeper is for it and for a cluster of several brokers. Processes end with {@link #close}, and
 * with this virtual machine, however it ends: each has a shell that waits for the end of its input, which we hold.
 */
public final class Servers implements AutoCloseable {
    private static final long LIMIT_MS = 180_000;
    private static final int FIRST_PORT = 18_000;
    private static final int PORTS = 12_000;
    private static final String RETENTION = "log.retention.check.interval.ms";
    private static final String GUARD = "\"$@\" & child=$!; cat > /dev/null; kill -9 $child; wait $child";
    private static final String[] SMALL = {"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"};

    private final Path folder;
    private final List<Process> processes = new ArrayList<>();
    private final List<Integer> ports = new ArrayList<>();

    private Servers(final Path folder) {
        this.folder = folder;
    }

    /** Starts a broker for each of {@code brokers}, which tells what differs from the common properties. */
    public static Servers start(final List<Properties> brokers) throws IOException {
        final Servers servers = new Servers(Files.createTempDirectory("servers-"));
        try {
            servers.startAll(brokers);
        } catch (final IOException e) {
            servers.close();
            throw e;
        }
        return servers;
    }

    public String bootstrap() {
        return ports.stream().map(port -> "127.0.0.1:" + port).collect(Collectors.joining(","));
    }

    @Override
    public void close() {
        for (final Process process : processes) {
            try {
                process.getOutputStream().close();
                process.waitFor(LIMIT_MS, TimeUnit.MILLISECONDS);
            } catch (final IOException e) {
                process.destroyForcibly();
            } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
        processes.clear();
    }

    private void startAll(final List<Properties> brokers) throws IOException {
        final String binary = System.getProperty("blumfeld.binary");
        final String zookeeper = binary == null || brokers.size() > 1 ? startZookeeper() : null;
        for (int id = 0; id < brokers.size(); id++) {
            final Properties properties = common(id, brokers.size());
            // Records have timestamps of a clock that stands still, perhaps at 1970: they are not old, unless a test says so.
            if (!brokers.get(id).containsKey(RETENTION)) {
                properties.setProperty("log.initial.task.delay.ms", Long.toString(TimeUnit.HOURS.toMillis(1)));
            }
            brokers.get(id).forEach((key, value) -> properties.setProperty(key.toString(), value.toString()));
            final int port = freePort();
            ports.add(port);
            properties.setProperty("listeners", "PLAINTEXT://127.0.0.1:" + port);
            if (zookeeper != null) {
                properties.setProperty("zookeeper.connect", zookeeper);
            }
            if (binary != null) {
                properties.setProperty("blumfeld.http.address", "127.0.0.1:" + freePort());
            }
            final File file = write("broker-" + id + ".properties", properties);
            if (binary == null) {
                spawn("broker-" + id, java("kafka.Kafka", file));
            } else {
                spawn("broker-" + id, List.of(binary, "server", file.getPath()));
            }
        }
        for (int id = 0; id < brokers.size(); id++) {
            await("broker-" + id, "[KafkaServer id=" + id + "] started");
        }
    }

    private Properties common(final int id, final int size) {
        final Properties properties = new Properties();
        properties.setProperty("broker.id", Integer.toString(id));
        properties.setProperty("log.dirs", folder.resolve("data-" + id).toString());
        properties.setProperty("num.partitions", "1");
        properties.setProperty("auto.create.topics.enable", "true");
        properties.setProperty("group.initial.rebalance.delay.ms", "0");
        properties.setProperty("group.min.session.timeout.ms", "0");
        properties.setProperty("offsets.topic.num.partitions", "5");
        properties.setProperty("offsets.topic.replication.factor", Integer.toString(Math.min(size, 3)));
        properties.setProperty("transaction.state.log.num.partitions", "5");
        properties.setProperty("transaction.state.log.replication.factor", Integer.toString(Math.min(size, 3)));
        properties.setProperty("transaction.state.log.min.isr", "1");
        properties.setProperty("log.cleaner.dedupe.buffer.size", Integer.toString(2 * 1024 * 1024));
        return properties;
    }

    private String startZookeeper() throws IOException {
        final int port = freePort();
        final Properties properties = new Properties();
        properties.setProperty("tickTime", "2000");
        properties.setProperty("dataDir", folder.resolve("zookeeper").toString());
        properties.setProperty("clientPort", Integer.toString(port));
        properties.setProperty("clientPortAddress", "127.0.0.1");
        properties.setProperty("maxClientCnxns", "0");
        properties.setProperty("admin.enableServer", "false");
        final File file = write("zookeeper.properties", properties);
        spawn("zookeeper", java("org.apache.zookeeper.server.quorum.QuorumPeerMain", file));
        await("zookeeper", "binding to port");
        return "127.0.0.1:" + port;
    }

    private List<String> java(final String main, final File properties) throws IOException {
        final Properties log = new Properties();
        log.setProperty("log4j.rootLogger", "INFO, out");
        log.setProperty("log4j.appender.out", "org.apache.log4j.ConsoleAppender");
        log.setProperty("log4j.appender.out.layout", "org.apache.log4j.PatternLayout");
        log.setProperty("log4j.appender.out.layout.ConversionPattern", "[%d] %p %m (%c)%n");
        final List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(Arrays.asList(SMALL));
        command.add("-Dlog4j.configuration=" + write("log4j.properties", log).toURI());
        command.addAll(List.of("-cp", System.getProperty("kafka.jars"), main, properties.getPath()));
        return command;
    }

    private File write(final String name, final Properties properties) throws IOException {
        final Path path = folder.resolve(name);
        try (var writer = Files.newBufferedWriter(path)) {
            properties.store(writer, null);
        }
        return path.toFile();
    }

    private void spawn(final String name, final List<String> command) throws IOException {
        final List<String> guarded = new ArrayList<>(List.of("sh", "-c", GUARD, "guard"));
        guarded.addAll(command);
        final ProcessBuilder builder = new ProcessBuilder(guarded).redirectErrorStream(true);
        processes.add(builder.redirectOutput(log(name)).start());
    }

    private File log(final String name) {
        return folder.resolve(name + ".log").toFile();
    }

    private void await(final String name, final String line) throws IOException {
        final long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LIMIT_MS);
        String text = "";
        while (System.nanoTime() < end) {
            text = new String(Files.readAllBytes(log(name).toPath()), StandardCharsets.UTF_8);
            if (text.contains(line)) {
                return;
            }
            try {
                Thread.sleep(20);
            } catch (final InterruptedException e) {
                throw new IOException(e);
            }
        }
        throw new IOException(name + " does not say \"" + line + "\":\n" + text);
    }

    /** A port below those that the system gives to outgoing connections. */
    private static int freePort() throws IOException {
        for (int tries = 0; tries < PORTS; tries++) {
            final int port = FIRST_PORT + ThreadLocalRandom.current().nextInt(PORTS);
            try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
                return socket.getLocalPort();
            } catch (final BindException e) {
                // Somebody has it.
            }
        }
        throw new IOException("no free port");
    }
}
