package penstock.camel.pattern;

import penstock.camel.json.Decode;
import penstock.camel.message.Price;
import penstock.camel.message.Resident;

final class MessageFilter {

    private MessageFilter() {
    }

    static void byPrice(Routes routes) {
        routes.filtering();
        routes.source()
                .process(new Decode(Price.class))
                .filter(Body.matches(Price.class, Price::isCheap)).to("channel:out");
    }

    static void joinInside(Routes routes) {
        routes.filtering();
        routes.source()
                .process(new Decode(Resident.class))
                .filter(Body.matches(Resident.class, Resident::isSolventEuropean)).to("channel:out");
    }
}
