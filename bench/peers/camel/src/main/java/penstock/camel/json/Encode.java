package penstock.camel.json;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectWriter;
import org.apache.camel.Exchange;
import org.apache.camel.Message;
import org.apache.camel.Processor;

/** Writes the body as JSON bytes. */
public final class Encode implements Processor {

    private final ObjectWriter writer;

    public Encode(Class<?> type) {
        this.writer = Json.MAPPER.writerFor(type);
    }

    @Override
    public void process(Exchange exchange) throws JsonProcessingException {
        Message message = exchange.getMessage();
        message.setBody(writer.writeValueAsBytes(message.getBody()));
    }
}
