package penstock.camel.pattern;

import java.util.ArrayList;
import java.util.List;
import org.apache.camel.AggregationStrategy;
import org.apache.camel.Exchange;

/** The bodies of a group in a list. */
final class Collect implements AggregationStrategy {

    @Override
    public Exchange aggregate(Exchange group, Exchange arriving) {
        Object body = arriving.getMessage().getBody();
        if (group == null) {
            List<Object> bodies = new ArrayList<>();
            bodies.add(body);
            arriving.getMessage().setBody(bodies);
            return arriving;
        }
        @SuppressWarnings("unchecked")
        List<Object> bodies = (List<Object>) group.getMessage().getBody();
        bodies.add(body);
        return group;
    }
}
