package penstock.camel.pattern;

import penstock.camel.json.Decode;
import penstock.camel.message.Identified;

final class Baseline {

    private Baseline() {
    }

    static void draw(Routes routes) {
        routes.source().process(new Decode(Identified.class)).to("channel:out");
    }
}
