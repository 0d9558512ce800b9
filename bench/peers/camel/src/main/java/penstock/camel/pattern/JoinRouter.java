package penstock.camel.pattern;

import penstock.camel.json.Decode;
import penstock.camel.message.Identified;

final class JoinRouter {

    private JoinRouter() {
    }

    static Pattern of(int sources) {
        return routes -> {
            for (int source = 1; source <= sources; source++) {
                routes.source().process(new Decode(Identified.class)).to("direct:joined");
            }
            routes.from("direct:joined").to("channel:out");
        };
    }
}
