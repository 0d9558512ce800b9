package penstock.camel.pattern;

import com.fasterxml.jackson.databind.ObjectReader;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.apache.camel.AggregationStrategy;
import org.apache.camel.Processor;
import penstock.camel.json.Decode;
import penstock.camel.json.Encode;
import penstock.camel.json.Json;
import penstock.camel.message.Customer;
import penstock.camel.message.FlatOrder;
import penstock.camel.message.NestedOrder;
import penstock.camel.message.Order;
import penstock.camel.message.OrderAndCustomer;

/** Orders get fields of their customers, for which a second route is asked. */
final class ContentEnricher {

    private ContentEnricher() {
    }

    static void flat(Routes routes) throws IOException {
        draw(routes, FlatOrder.class, FlatOrder.class, (order, customer) -> {
            order.customerName = customer.name;
            order.marketSegment = customer.marketSegment;
            return order;
        });
    }

    static void nested(Routes routes) throws IOException {
        draw(routes, NestedOrder.class, NestedOrder.class, (order, customer) -> {
            order.customer = customer;
            return order;
        });
    }

    static void multiFormat(Routes routes) throws IOException {
        draw(routes, Order.class, OrderAndCustomer.class, (order, customer) ->
                new OrderAndCustomer(order.identifier, "MULTI", order, customer));
    }

    private static <I extends Order, O> void draw(
            Routes routes, Class<I> input, Class<O> output, BiFunction<I, Customer, O> combine) throws IOException {
        AggregationStrategy strategy = (order, customer) -> {
            order.getMessage().setBody(combine.apply(
                    input.cast(order.getMessage().getBody()), (Customer) customer.getMessage().getBody()));
            return order;
        };
        routes.from("direct:customer").process(lookUp(routes.table("customers")));
        routes.source()
                .process(new Decode(input))
                .enrich("direct:customer", strategy)
                .process(new Encode(output))
                .to("channel:out");
    }

    private static Processor lookUp(List<byte[]> lines) throws IOException {
        ObjectReader reader = Json.MAPPER.readerFor(Customer.class);
        Map<Long, Customer> customers = new HashMap<>();
        for (byte[] line : lines) {
            Customer customer = reader.readValue(line);
            customers.put(customer.key, customer);
        }
        return exchange -> {
            Order order = (Order) exchange.getMessage().getBody();
            exchange.getMessage().setBody(customers.get(order.customerKey));
        };
    }
}
