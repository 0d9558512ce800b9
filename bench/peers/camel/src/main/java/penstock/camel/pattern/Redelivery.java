package penstock.camel.pattern;

import org.apache.camel.Exchange;
import org.apache.camel.Processor;
import penstock.camel.json.Decode;
import penstock.camel.json.Encode;
import penstock.camel.message.DeliveredOrder;

final class Redelivery {

    private static final Exception NOT_YET = new PassingFault();

    private Redelivery() {
    }

    static Pattern after(int failures) {
        return routes -> {
            routes.errorHandler(routes.defaultErrorHandler()
                    .maximumRedeliveries(failures)
                    .redeliveryDelay(0)
                    .logRetryAttempted(false));
            routes.source()
                    .process(new Decode(DeliveredOrder.class))
                    .process(failing(failures))
                    .process(Redelivery::markDelivered)
                    .process(new Encode(DeliveredOrder.class))
                    .to("channel:out");
        };
    }

    private static Processor failing(int failures) {
        return exchange -> {
            Integer redelivery = (Integer) exchange.getMessage().getHeader(Exchange.REDELIVERY_COUNTER);
            if (redelivery == null || redelivery < failures) {
                throw NOT_YET;
            }
        };
    }

    private static void markDelivered(Exchange exchange) {
        ((DeliveredOrder) exchange.getMessage().getBody()).delivered = true;
    }
}
