package penstock.camel;

import com.fasterxml.jackson.core.JsonProcessingException;
import java.io.PrintStream;
import java.util.LinkedHashMap;
import java.util.Map;
import penstock.camel.json.Json;

/** The JSON lines that the harness reads; one of several jobs names its workload in each. */
final class Report {

    private final PrintStream out;
    private final String workload;

    Report(PrintStream out, String workload) {
        this.out = out;
        this.workload = workload;
    }

    void ready(String version, double loadSeconds) {
        Map<String, Object> peer = new LinkedHashMap<>();
        peer.put("name", "camel");
        peer.put("version", version);
        peer.put("load_seconds", loadSeconds);
        print(Map.of("ready", peer));
    }

    void checked(Map<String, Long> delivered) {
        print(Map.of("checked", delivered));
    }

    void iteration(int number, boolean warmup, Iteration iteration) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("iteration", number);
        line.put("warmup", warmup);
        line.put("messages", iteration.messages());
        line.put("seconds", iteration.seconds());
        line.put("delivered", iteration.delivered());
        line.put("filtered", iteration.filtered());
        print(line);
    }

    void missing(String reason) {
        print(Map.of("missing", reason));
    }

    void error(Throwable problem) {
        print(Map.of("error", problem.toString()));
    }

    private void print(Map<String, ?> said) {
        Map<String, Object> line = new LinkedHashMap<>();
        if (workload != null) {
            line.put("workload", workload);
        }
        line.putAll(said);
        try {
            out.println(Json.MAPPER.writeValueAsString(line));
        } catch (JsonProcessingException impossible) {
            throw new AssertionError(impossible);
        }
        out.flush();
    }
}
