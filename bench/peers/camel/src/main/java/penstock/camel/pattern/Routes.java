package penstock.camel.pattern;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.model.ProcessorDefinition;
import org.apache.camel.model.RouteDefinition;
import penstock.camel.Input;

/** The routes of one workload, and what the peer must know of them. */
public final class Routes extends RouteBuilder {

    private final Pattern pattern;
    private final Function<String, List<Path>> tables;
    private final boolean batches;
    private final List<String> entrances = new ArrayList<>();
    private final List<Runnable> beforeIteration = new ArrayList<>();
    private final List<Runnable> afterIteration = new ArrayList<>();
    private boolean filtering;

    public Routes(Pattern pattern, Function<String, List<Path>> tables, boolean batches) {
        this.pattern = pattern;
        this.tables = tables;
        this.batches = batches;
    }

    @Override
    public void configure() throws Exception {
        // A failure stays on the exchange, where the producer finds it.
        errorHandler(noErrorHandler());
        pattern.draw(this);
    }

    /** A new way in, for single messages or for lists of them, which are split here. */
    ProcessorDefinition<?> source() {
        String name = "in-" + (entrances.size() + 1);
        entrances.add(name);
        RouteDefinition route = from("direct:" + name).routeId(name);
        return batches ? route.split(Body.expression(List.class, list -> list)).streaming().stopOnException() : route;
    }

    List<byte[]> table(String name) throws IOException {
        return Input.read(tables.apply(name));
    }

    void beforeIteration(Runnable action) {
        beforeIteration.add(action);
    }

    void afterIteration(Runnable action) {
        afterIteration.add(action);
    }

    void filtering() {
        filtering = true;
    }

    public List<String> entrances() {
        return entrances;
    }

    public boolean isFiltering() {
        return filtering;
    }

    /** What steps remember from earlier iterations goes. */
    public void forget() {
        beforeIteration.forEach(Runnable::run);
    }

    /** What steps still hold back is sent on. */
    public void flush() {
        afterIteration.forEach(Runnable::run);
    }
}
