package penstock.camel.pattern;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.camel.Endpoint;
import org.apache.camel.Expression;
import penstock.camel.json.Decode;
import penstock.camel.message.Addressed;

/** Recipients are found as endpoints, not as names, so that Camel need not look them up for each message. */
final class RecipientList {

    private RecipientList() {
    }

    static void byPriority(Routes routes) {
        Map<Character, Endpoint> priorities = endpoints(routes, "channel:priority-", "12345");
        draw(routes, Body.expression(Addressed.class, order -> List.of(
                priorities.get(order.priority.charAt(0)))));
    }

    static void byPriorityAndStatus(Routes routes) {
        Map<Character, Endpoint> priorities = endpoints(routes, "channel:priority-", "12345");
        Map<Character, Endpoint> statuses = endpoints(routes, "channel:status-", "FOP");
        draw(routes, Body.expression(Addressed.class, order -> List.of(
                priorities.get(order.priority.charAt(0)), statuses.get(order.status.charAt(0)))));
    }

    private static void draw(Routes routes, Expression recipients) {
        routes.source().process(new Decode(Addressed.class)).recipientList(recipients).stopOnException();
    }

    private static Map<Character, Endpoint> endpoints(Routes routes, String prefix, String names) {
        Map<Character, Endpoint> endpoints = new HashMap<>();
        for (char name : names.toCharArray()) {
            endpoints.put(name, routes.getContext().getEndpoint(prefix + name));
        }
        return endpoints;
    }
}
