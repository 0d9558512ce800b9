package penstock.camel.channel;

import org.apache.camel.Consumer;
import org.apache.camel.Processor;
import org.apache.camel.Producer;
import org.apache.camel.support.DefaultEndpoint;

final class ChannelEndpoint extends DefaultEndpoint {

    private final Channel channel;

    ChannelEndpoint(String uri, ChannelComponent component, Channel channel) {
        super(uri, component);
        this.channel = channel;
    }

    @Override
    public Producer createProducer() {
        return new ChannelProducer(this, channel);
    }

    @Override
    public Consumer createConsumer(Processor processor) {
        throw new UnsupportedOperationException("nothing comes out of a void receiver");
    }
}
