package penstock.camel.pattern;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.camel.AggregationStrategy;
import org.apache.camel.Exchange;

/** The fields of all bodies of a group in one object. */
final class Union implements AggregationStrategy {

    @Override
    public Exchange aggregate(Exchange group, Exchange arriving) {
        if (group == null) {
            return arriving;
        }
        ObjectNode fields = (ObjectNode) group.getMessage().getBody();
        fields.setAll((ObjectNode) arriving.getMessage().getBody());
        return group;
    }
}
