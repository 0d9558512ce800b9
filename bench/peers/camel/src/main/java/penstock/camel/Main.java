package penstock.camel;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import penstock.camel.json.Json;
import penstock.camel.pattern.Patterns;

/** The Camel peer of EIPBench: a JSON file names a workload, or a list of them; the answers are JSON lines. */
public final class Main {

    private Main() {
    }

    public static void main(String[] commandLine) {
        boolean failed = false;
        try {
            if (commandLine.length != 1) {
                throw new IllegalArgumentException("one argument is needed: the JSON file that names the workload");
            }
            JsonNode jobs = Json.MAPPER.readTree(Path.of(commandLine[0]).toFile());
            for (Arguments job : Arguments.read(jobs)) {
                failed |= !isDone(job, new Report(System.out, jobs.isArray() ? job.workload() : null));
            }
        } catch (Exception problem) {
            problem.printStackTrace();
            new Report(System.out, null).error(problem);
            failed = true;
        }
        System.exit(failed ? 1 : 0);
    }

    /** A job that fails does not stop the next one. */
    private static boolean isDone(Arguments job, Report report) {
        try {
            run(job, report);
            return true;
        } catch (Throwable problem) {
            problem.printStackTrace();
            report.error(problem);
            return false;
        }
    }

    private static void run(Arguments arguments, Report report) throws Exception {
        if (!Patterns.has(arguments.workload())) {
            report.missing("no Camel route is written for " + arguments.workload());
            return;
        }
        long start = System.nanoTime();
        try (Peer peer = new Peer(arguments)) {
            report.ready(peer.version(), (System.nanoTime() - start) / 1e9);
            if (arguments.isCheck()) {
                report.checked(peer.check());
                return;
            }
            long begun = System.nanoTime();
            int left = arguments.iterations();
            for (int number = 0; left > 0; number++) {
                double passed = (System.nanoTime() - begun) / 1e9;
                boolean warmup = number < arguments.warmup() || passed < arguments.warmupSeconds();
                report.iteration(number, warmup, peer.iterate());
                left -= warmup ? 0 : 1;
            }
        }
    }
}
