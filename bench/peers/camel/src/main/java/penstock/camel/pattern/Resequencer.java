package penstock.camel.pattern;

import java.util.Comparator;
import java.util.List;
import org.apache.camel.Expression;
import penstock.camel.json.Decode;
import penstock.camel.message.Positioned;

/**
 * Complete sequences: collected by group, sorted, and sent one by one.
 *
 * Camel's own resequencer knows no groups: its batches are cut by number alone, which is wrong as soon as two
 * producers send different groups at the same time, and its streams search the whole sequence for each message.
 */
final class Resequencer {

    private static final Expression GROUP = Body.expression(Positioned.class, message -> message.group);
    private static final Expression IN_ORDER = Body.expression(List.class, Resequencer::sorted);

    private Resequencer() {
    }

    static Pattern complete(int size) {
        return routes -> Aggregator
                .aggregate(routes, routes.source().process(new Decode(Positioned.class)), GROUP, new Collect(), size)
                .split(IN_ORDER).streaming().stopOnException()
                .to("channel:out");
    }

    private static List<Positioned> sorted(List<?> messages) {
        return messages.stream()
                .map(Positioned.class::cast)
                .sorted(Comparator.comparingInt(message -> message.position))
                .toList();
    }
}
