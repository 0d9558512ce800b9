package penstock.camel.pattern;

import penstock.camel.json.Decode;
import penstock.camel.message.Price;
import penstock.camel.message.Resident;
import penstock.camel.message.Terms;

final class ContentBasedRouter {

    private ContentBasedRouter() {
    }

    static void byPrice(Routes routes) {
        routes.source()
                .process(new Decode(Price.class))
                .choice()
                .when(Body.matches(Price.class, Price::isCheap)).to("channel:cheap")
                .otherwise().to("channel:rest");
    }

    static void fiveBranches(Routes routes) {
        routes.source()
                .process(new Decode(Terms.class))
                .choice()
                .when(Body.matches(Terms.class, Terms::isCheap)).to("channel:cheap")
                .when(Body.matches(Terms.class, Terms::isMedium)).to("channel:medium")
                .when(Body.matches(Terms.class, Terms::isOld)).to("channel:old")
                .when(Body.matches(Terms.class, Terms::isPending)).to("channel:pending")
                .otherwise().to("channel:rest");
    }

    static void complexCondition(Routes routes) {
        routes.source()
                .process(new Decode(Terms.class))
                .choice()
                .when(Body.matches(Terms.class, ContentBasedRouter::isChosen)).to("channel:chosen")
                .otherwise().to("channel:rest");
    }

    static void joinInside(Routes routes) {
        routes.source()
                .process(new Decode(Resident.class))
                .choice()
                .when(Body.matches(Resident.class, Resident::isSolventEuropean)).to("channel:europe")
                .otherwise().to("channel:rest");
    }

    private static boolean isChosen(Terms terms) {
        return terms.isCheap() && terms.isMedium() && terms.isOld() || terms.isPending();
    }
}
