package penstock.camel.channel;

import java.io.IOException;
import org.apache.camel.AsyncCallback;
import org.apache.camel.Exchange;
import org.apache.camel.support.DefaultAsyncProducer;
import penstock.camel.json.Decoded;

final class ChannelProducer extends DefaultAsyncProducer {

    private final Channel channel;

    ChannelProducer(ChannelEndpoint endpoint, Channel channel) {
        super(endpoint);
        this.channel = channel;
    }

    @Override
    public boolean process(Exchange exchange, AsyncCallback callback) {
        try {
            Object body = exchange.getMessage().getBody();
            channel.accept(body instanceof Decoded decoded ? decoded.text : (byte[]) body);
        } catch (IOException | ClassCastException problem) {
            exchange.setException(problem);
        }
        callback.done(true);
        return true;
    }
}
