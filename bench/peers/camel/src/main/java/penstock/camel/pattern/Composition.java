package penstock.camel.pattern;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import org.apache.camel.Exchange;
import org.apache.camel.Message;
import org.apache.camel.model.LoadBalanceDefinition;
import org.apache.camel.model.ProcessorDefinition;
import penstock.camel.json.DecodeTree;
import penstock.camel.json.Encode;
import penstock.camel.message.OrderEntry;

/** Patterns put together. Parts of one message are gathered by their splitter, as a composed message processor. */
final class Composition {

    private Composition() {
    }

    static void splitAndAggregateFields(Routes routes) {
        routes.source()
                .process(new DecodeTree())
                .split(Splitter.FIELDS, new Union()).streaming().stopOnException()
                .process(Composition::fieldToObject)
                .end()
                .process(new Encode(JsonNode.class))
                .to("channel:out");
    }

    static void splitAndAggregateEntries(Routes routes) {
        splitAndAggregateEntries(routes.source().process(new DecodeTree()))
                .process(new Encode(JsonNode.class))
                .to("channel:out");
    }

    static Pattern balancedSplitAndAggregate(int branches) {
        return routes -> {
            LoadBalanceDefinition balancer = routes.source().process(new DecodeTree()).loadBalance().roundRobin();
            for (int branch = 1; branch <= branches; branch++) {
                balancer.to("direct:branch-" + branch);
                splitAndAggregateEntries(routes.from("direct:branch-" + branch)).to("direct:joined");
            }
            routes.from("direct:joined").process(new Encode(JsonNode.class)).to("channel:out");
        };
    }

    private static ProcessorDefinition<?> splitAndAggregateEntries(ProcessorDefinition<?> source) {
        return source
                .split(Splitter.ENTRIES, new Union()).streaming().stopOnException()
                .process(Composition::entryToObject)
                .end();
    }

    private static void fieldToObject(Exchange exchange) {
        Message message = exchange.getMessage();
        Map.Entry<?, ?> field = (Map.Entry<?, ?>) message.getBody();
        ObjectNode part = JsonNodeFactory.instance.objectNode();
        message.setBody(part.set((String) field.getKey(), (JsonNode) field.getValue()));
    }

    private static void entryToObject(Exchange exchange) {
        Message message = exchange.getMessage();
        message.setBody(((OrderEntry) message.getBody()).toObject());
    }
}
