package penstock.camel.pattern;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.Map;
import penstock.camel.json.Decode;
import penstock.camel.json.DecodeTree;
import penstock.camel.json.Encode;
import penstock.camel.message.Content;
import penstock.camel.message.OrderSummary;
import penstock.camel.message.Translation;

final class MessageTranslator {

    private static final String CONSTANT = "-copy";

    private MessageTranslator() {
    }

    static void rename(Routes routes) {
        routes.source()
                .process(new Decode(OrderSummary.class))
                .transform(Body.expression(OrderSummary.class, Translation::of))
                .process(new Encode(Translation.class))
                .to("channel:out");
    }

    static void filterContent(Routes routes) {
        routes.source()
                .process(new Decode(Content.class))
                .process(new Encode(Content.class))
                .to("channel:out");
    }

    static void copyEntries(Routes routes) {
        routes.source()
                .process(new DecodeTree())
                .transform(Body.expression(ObjectNode.class, MessageTranslator::withCopies))
                .process(new Encode(JsonNode.class))
                .to("channel:out");
    }

    private static ObjectNode withCopies(ObjectNode order) {
        ObjectNode copied = order.objectNode();
        for (Map.Entry<String, JsonNode> field : order.properties()) {
            copied.set(field.getKey(), field.getValue());
            copied.put(field.getKey() + "_copy", text(field.getValue()) + CONSTANT);
        }
        return copied;
    }

    /** The price has two digits after the point. */
    private static String text(JsonNode value) {
        if (!value.isDouble()) {
            return value.asText();
        }
        return BigDecimal.valueOf(value.doubleValue()).setScale(2, RoundingMode.HALF_UP).toString();
    }
}
