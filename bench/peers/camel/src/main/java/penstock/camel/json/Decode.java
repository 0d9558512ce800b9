package penstock.camel.json;

import com.fasterxml.jackson.databind.ObjectReader;
import java.io.IOException;
import org.apache.camel.Exchange;
import org.apache.camel.Message;
import org.apache.camel.Processor;

/** Reads the body into a class that has only the fields that are needed; the others are skipped. */
public final class Decode implements Processor {

    private final ObjectReader reader;

    public Decode(Class<? extends Decoded> type) {
        this.reader = Json.MAPPER.readerFor(type);
    }

    @Override
    public void process(Exchange exchange) throws IOException {
        Message message = exchange.getMessage();
        byte[] text = (byte[]) message.getBody();
        Decoded decoded = reader.readValue(text);
        decoded.text = text;
        message.setBody(decoded);
    }
}
