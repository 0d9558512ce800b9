package penstock.camel.pattern;

final class Baseline {

    private Baseline() {
    }

    static void draw(Routes routes) {
        routes.source().to("channel:out");
    }
}
