package penstock.camel.pattern;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import org.apache.camel.Expression;
import org.apache.camel.Processor;
import penstock.camel.json.Decode;
import penstock.camel.json.DecodeTree;
import penstock.camel.json.Encode;
import penstock.camel.message.Order;
import penstock.camel.message.OrderEntry;
import penstock.camel.message.Orders;

final class Splitter {

    /** Entries of name and value, which are written as objects of one field. */
    static final Expression FIELDS = Body.expression(ObjectNode.class, ObjectNode::properties);
    static final Expression ENTRIES = Body.expression(ObjectNode.class, OrderEntry::of);

    private Splitter() {
    }

    static void collection(Routes routes) {
        Expression orders = Body.expression(Orders.class, collection -> collection.orders);
        draw(routes, new Decode(Orders.class), orders, Order.class);
    }

    static void fields(Routes routes) {
        draw(routes, new DecodeTree(), FIELDS, Map.Entry.class);
    }

    static void entries(Routes routes) {
        draw(routes, new DecodeTree(), ENTRIES, OrderEntry.class);
    }

    private static void draw(Routes routes, Processor decode, Expression parts, Class<?> type) {
        routes.source()
                .process(decode)
                .split(parts).streaming().stopOnException()
                .process(new Encode(type))
                .to("channel:out");
    }
}
