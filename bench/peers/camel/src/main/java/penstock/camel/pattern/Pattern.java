package penstock.camel.pattern;

/** Draws the routes of one workload. */
@FunctionalInterface
public interface Pattern {

    void draw(Routes routes) throws Exception;
}
