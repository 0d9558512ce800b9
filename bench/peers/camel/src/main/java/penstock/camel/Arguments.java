package penstock.camel;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import penstock.camel.json.Json;

/** What the harness asks for. What it leaves out is null. */
record Arguments(
        String workload,
        List<Path> inputs,
        Map<String, List<Path>> tables,
        int warmup,
        int iterations,
        Integer threads,
        Integer users,
        Integer batch,
        @JsonProperty("check_out") Path checkOut,
        @JsonProperty("warmup_seconds") double warmupSeconds) {

    private static final int THREADS = 2;

    Arguments {
        if (workload == null || inputs == null) {
            throw new IllegalArgumentException("a job must name a workload and its inputs");
        }
    }

    /** One job, or several. */
    static List<Arguments> read(JsonNode jobs) throws IOException {
        return Json.MAPPER.readerForListOf(Arguments.class)
                .with(DeserializationFeature.ACCEPT_SINGLE_VALUE_AS_ARRAY)
                .readValue(jobs);
    }

    boolean isCheck() {
        return checkOut != null;
    }

    int producers() {
        if (users != null) {
            return users;
        }
        return threads == null ? THREADS : threads;
    }

    List<Path> table(String name) {
        List<Path> files = tables == null ? null : tables.get(name);
        if (files == null) {
            throw new IllegalArgumentException(workload + " needs the table " + name);
        }
        return files;
    }
}
