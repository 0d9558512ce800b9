package penstock.camel.message;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonSerializable;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.jsontype.TypeSerializer;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.List;

/** Head and tail of an order around one of the fields between them. */
public record OrderEntry(ObjectNode order, String field) implements JsonSerializable {

    private static final List<String> HEAD = List.of("msgId", "type", "OORDERKEY", "OCUSTKEY");
    private static final List<String> MIDDLE = List.of(
            "OORDERSTATUS", "OTOTALPRICE", "OORDERDATE", "OORDERPRIORITY", "OCLERK", "OSHIPPRIORITY");
    private static final String TAIL = "OCOMMENT";

    public static List<OrderEntry> of(ObjectNode order) {
        return MIDDLE.stream().map(field -> new OrderEntry(order, field)).toList();
    }

    public ObjectNode toObject() {
        ObjectNode entry = order.objectNode();
        for (String name : HEAD) {
            entry.set(name, order.get(name));
        }
        entry.set(field, order.get(field));
        return entry.set(TAIL, order.get(TAIL));
    }

    /** Written without an object in between, for this is done six times for each order. */
    @Override
    public void serialize(JsonGenerator generator, SerializerProvider provider) throws IOException {
        generator.writeStartObject();
        for (String name : HEAD) {
            write(name, generator, provider);
        }
        write(field, generator, provider);
        write(TAIL, generator, provider);
        generator.writeEndObject();
    }

    @Override
    public void serializeWithType(JsonGenerator generator, SerializerProvider provider, TypeSerializer type)
            throws IOException {
        serialize(generator, provider);
    }

    private void write(String name, JsonGenerator generator, SerializerProvider provider) throws IOException {
        generator.writeFieldName(name);
        ((JsonSerializable) order.get(name)).serialize(generator, provider);
    }
}
