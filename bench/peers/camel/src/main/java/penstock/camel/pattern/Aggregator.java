package penstock.camel.pattern;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Comparator;
import java.util.List;
import org.apache.camel.AggregationStrategy;
import org.apache.camel.Exchange;
import org.apache.camel.Expression;
import org.apache.camel.model.AggregateDefinition;
import org.apache.camel.model.ProcessorDefinition;
import org.apache.camel.processor.aggregate.AggregateController;
import org.apache.camel.processor.aggregate.DefaultAggregateController;
import org.apache.camel.util.concurrent.SynchronousExecutorService;
import penstock.camel.json.Decode;
import penstock.camel.json.DecodeTree;
import penstock.camel.json.Encode;
import penstock.camel.message.Order;
import penstock.camel.message.Orders;

final class Aggregator {

    private Aggregator() {
    }

    static Pattern consecutive(int size) {
        Expression key = Body.expression(Order.class, order -> Long.toString(order.identifier / size));
        return routes -> aggregate(routes, routes.source().process(new Decode(Order.class)), key, new Collect(), size)
                .process(Aggregator::putTogether)
                .process(new Encode(Orders.class))
                .to("channel:out");
    }

    static Pattern union(String field, int size) {
        Expression key = Body.expression(ObjectNode.class, part -> part.get(field).asText());
        return routes -> aggregate(routes, routes.source().process(new DecodeTree()), key, new Union(), size)
                .process(new Encode(JsonNode.class))
                .to("channel:out");
    }

    /**
     * What is not complete at the end of an iteration goes on, too.
     *
     * Complete groups go on in the thread that completed them; otherwise Camel sends all of them through a single one.
     */
    static AggregateDefinition aggregate(
            Routes routes, ProcessorDefinition<?> source, Expression key, AggregationStrategy strategy, int size) {
        AggregateController controller = new DefaultAggregateController();
        routes.afterIteration(controller::forceCompletionOfAllGroups);
        return source.aggregate(key, strategy)
                .completionSize(size)
                .aggregateController(controller)
                .executorService(new SynchronousExecutorService());
    }

    private static void putTogether(Exchange exchange) {
        @SuppressWarnings("unchecked")
        List<Order> group = (List<Order>) exchange.getMessage().getBody();
        // Producers overtake each other, so that a group may have come in any order.
        group.sort(Comparator.comparingLong(order -> order.identifier));
        Orders together = new Orders();
        together.orders = group;
        exchange.getMessage().setBody(together);
    }
}
