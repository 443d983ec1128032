package blumfeld.streams;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectUniqueId;

import java.io.IOException;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs tests, and writes a line for the end of each into a file: a word and JUnit's id of the test.
 *
 * <p>Arguments: the file, then classes of tests or ids as they stand in such a file.
 */
public final class Run implements TestExecutionListener {
    private final PrintStream report;

    private Run(final PrintStream report) {
        this.report = report;
    }

    public static void main(final String[] arguments) throws IOException {
        final List<DiscoverySelector> selected =
            Arrays.stream(arguments).skip(1).map(Run::selector).collect(Collectors.toList());
        final LauncherDiscoveryRequest request =
            LauncherDiscoveryRequestBuilder.request().selectors(selected).build();
        try (PrintStream report = new PrintStream(arguments[0])) {
            LauncherFactory.create().execute(request, new Run(report));
        }
        // Streams of a test that failed may still run.
        System.exit(0);
    }

    private static DiscoverySelector selector(final String name) {
        return name.startsWith("[") ? selectUniqueId(name) : selectClass(name);
    }

    @Override
    public void executionFinished(final TestIdentifier test, final TestExecutionResult result) {
        final boolean passed = result.getStatus() == TestExecutionResult.Status.SUCCESSFUL;
        if (test.isTest() || !passed) {
            report.println((passed ? "PASSED " : "FAILED ") + test.getUniqueId());
        }
        result.getThrowable().ifPresent(why -> {
            System.out.println("FAILED " + test.getUniqueId());
            why.printStackTrace(System.out);
        });
    }

    @Override
    public void executionSkipped(final TestIdentifier test, final String reason) {
        report.println("SKIPPED " + test.getUniqueId());
    }
}
