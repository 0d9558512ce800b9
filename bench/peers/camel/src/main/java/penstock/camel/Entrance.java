package penstock.camel;

import org.apache.camel.CamelContext;
import org.apache.camel.Consumer;
import org.apache.camel.Exchange;
import org.apache.camel.Processor;

/** The beginning of a route, as a consumer of Camel enters it: by its processor, without a producer in between. */
final class Entrance {

    private final Consumer consumer;
    private final Processor processor;

    Entrance(CamelContext context, String route) {
        consumer = context.getRoute(route).getConsumer();
        processor = consumer.getProcessor();
    }

    /** Comes back when the message has gone all its way. */
    void send(Object body) throws Exception {
        Exchange exchange = consumer.createExchange(false);
        exchange.getMessage().setBody(body);
        processor.process(exchange);
        Exception problem = exchange.getException();
        consumer.releaseExchange(exchange, false);
        if (problem != null) {
            throw problem;
        }
    }
}
