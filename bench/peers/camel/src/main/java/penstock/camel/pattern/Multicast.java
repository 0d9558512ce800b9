package penstock.camel.pattern;

import org.apache.camel.model.MulticastDefinition;
import penstock.camel.json.Decode;
import penstock.camel.message.Identified;

final class Multicast {

    private Multicast() {
    }

    static Pattern to(int channels) {
        return routes -> {
            MulticastDefinition multicast =
                    routes.source().process(new Decode(Identified.class)).multicast().stopOnException();
            for (int channel = 1; channel <= channels; channel++) {
                multicast.to("channel:out-" + channel);
            }
        };
    }
}
