package penstock.camel;

import java.util.Map;

/** What was sent and what came out, in the time that it took. */
record Iteration(int messages, double seconds, Map<String, Long> delivered, long filtered) {
}
