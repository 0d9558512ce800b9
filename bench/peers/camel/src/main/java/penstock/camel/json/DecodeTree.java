package penstock.camel.json;

import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import org.apache.camel.Exchange;
import org.apache.camel.Message;
import org.apache.camel.Processor;

/** Reads the whole body into a tree, for routes that handle all fields alike. */
public final class DecodeTree implements Processor {

    private final ObjectReader reader = Json.MAPPER.readerFor(ObjectNode.class);

    @Override
    public void process(Exchange exchange) throws IOException {
        Message message = exchange.getMessage();
        ObjectNode tree = reader.readValue((byte[]) message.getBody());
        message.setBody(tree);
    }
}
